"""`python -m gateway` is the `relayrouter` command."""

from gateway.cli.app import main

if __name__ == "__main__":
    main()
