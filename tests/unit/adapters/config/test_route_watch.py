"""The watch over the table's file: changes of every kind are seen, none in the middle of a write."""

import os
from pathlib import Path

import pytest

from gateway.adapters.config.route_file import BadRoutes
from gateway.adapters.config.route_watch import RouteFileWatch
from gateway.domain.routing.book import RouteFile
from gateway.ports.routing import RoutesRefused


def said(version: str) -> str:
    return f"version: {version}\nroutes: {{}}\n"


def name_of(found: RouteFile | RoutesRefused | None) -> str | None:
    assert found is None or isinstance(found, RouteFile), found
    return None if found is None else found.current.name


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "routes.yaml"
    path.write_text(said("one"))
    return path


@pytest.fixture
def watch(path: Path) -> RouteFileWatch:
    watch = RouteFileWatch(path)
    assert "one" == watch.load().current.name
    return watch


def test_what_does_not_change_is_not_told_again(watch: RouteFileWatch) -> None:
    assert [None] * 3 == [watch.look() for _ in range(3)]


def test_a_change_in_place_is_told_once_when_two_looks_saw_the_same(watch: RouteFileWatch, path: Path) -> None:
    path.write_text(said("two"))

    assert [None, "two", None, None] == [name_of(watch.look()) for _ in range(4)]


def test_a_write_that_is_under_way_is_not_read(watch: RouteFileWatch, path: Path) -> None:
    told = []
    for part in ("", "version: t", said("two")):
        path.write_text(part)
        told.append(watch.look())

    assert [None] * 3 == told
    assert "two" == name_of(watch.look())


def test_a_file_that_is_renamed_over_is_seen_though_it_has_the_same_size_and_time(
    watch: RouteFileWatch, path: Path
) -> None:
    before = path.stat()
    fresh = path.with_suffix(".new")
    fresh.write_text(said("two"))
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.replace(path)

    watch.look()

    assert "two" == name_of(watch.look())


def test_a_configmaps_swapped_link_is_seen_though_size_and_time_are_the_same(tmp_path: Path) -> None:
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "routes.yaml").write_text(said(version))
        os.utime(tmp_path / version / "routes.yaml", (1, 1))
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "routes.yaml").symlink_to("..data/routes.yaml")
    watch = RouteFileWatch(tmp_path / "routes.yaml")
    watch.load()

    (tmp_path / "fresh").symlink_to("two")
    (tmp_path / "fresh").replace(tmp_path / "..data")
    watch.look()

    assert "two" == name_of(watch.look())


def test_a_file_that_was_only_touched_is_no_change(watch: RouteFileWatch, path: Path) -> None:
    os.utime(path, (5, 5))

    assert [None] * 3 == [watch.look() for _ in range(3)]


def test_what_is_wrong_is_told_with_its_lines_once_and_what_is_right_again_too(
    watch: RouteFileWatch, path: Path
) -> None:
    path.write_text("routes: {}\nnonsense: 1\n")
    refused = [watch.look() for _ in range(3)]
    path.write_text(said("one"))
    right = [name_of(watch.look()) for _ in range(3)]

    assert [None, (f"{path}:2: the file: unknown key `nonsense`; there are version, routes, canary",), None] == [
        found and found.problems for found in refused if not isinstance(found, RouteFile)
    ]
    assert [None, "one", None] == right


def test_a_file_that_goes_is_told_and_so_is_its_return(watch: RouteFileWatch, path: Path) -> None:
    path.unlink()
    gone = [watch.look() for _ in range(3)]
    path.write_text(said("one"))
    back = [name_of(watch.look()) for _ in range(2)]

    assert [None, RoutesRefused((f"{path}: is not there",)), None] == gone
    assert [None, "one"] == back


def test_what_cannot_be_read_is_told_once_and_tried_on(watch: RouteFileWatch, path: Path) -> None:
    """A directory in its place stands for a file without rights: the table before would stay, and nobody knew."""
    aside = path.rename(path.with_suffix(".aside"))
    path.mkdir()
    told = [watch.look() for _ in range(3)]
    path.rmdir()
    aside.rename(path)
    back = [name_of(watch.look()) for _ in range(3)]

    assert [None, RoutesRefused((f"{path}: cannot be read: Is a directory",)), None] == told
    assert [None, "one", None] == back


def test_a_loop_of_links_is_a_file_that_is_not_there(watch: RouteFileWatch, path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)

    assert [None, RoutesRefused((f"{path}: is not there",))] == [watch.look() for _ in range(2)]


def test_a_gateway_does_not_begin_with_a_wrong_table_or_none(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("routes: 5")

    with pytest.raises(BadRoutes, match="1 problem in the route table"):
        RouteFileWatch(tmp_path / "wrong.yaml").load()
    with pytest.raises(BadRoutes) as caught:
        RouteFileWatch(tmp_path / "none.yaml").load()
    assert (f"{tmp_path / 'none.yaml'}:1: cannot be read: No such file or directory",) == caught.value.details
