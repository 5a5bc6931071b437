"""The capture interfaces of Wireshark: answers to its questions, and captures by a real tshark."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.capture import open_capture
from mxwire.cli import extcap
from mxwire.cli.simulate import command as simulate
from mxwire.errors import MxwireError
from mxwire.plugin import Report, Tshark, install, places
from mxwire.plugin.check import list_interfaces
from tests.cli.support import open_to_all
from tests.dissector.support import needs_scripts

NAMES = ["mxwire-sim", "mxwire-live", "mxwire-ssh"]
PROGRAM = [sys.executable, "-EP", "-m", "mxwire.cli.extcap"]
NOT_OFFERED = {"seeds", "exhaustive", "on", "jobs", "checkpoint", "target", "pcap", "as_json", "judged"}
"""Options of ``simulate`` that fit no capture."""


def answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """The lines of an answer."""
    monkeypatch.setattr(sys, "argv", ["mxwire-extcap", *words])
    extcap.main()
    return capsys.readouterr().out.splitlines()


def fields(line: str) -> dict[str, str]:
    """The values of a line of an answer."""
    return dict(re.findall(r"\{([^={}]+)=([^{}]*)\}", line))


@pytest.fixture
def ask(capsys, monkeypatch):
    return lambda *words: answer(capsys, monkeypatch, *words)


class TestAnswers:
    def test_interfaces(self, ask):
        first, *rest = ask("--extcap-interfaces", "--extcap-version=4.0")
        assert first.startswith("extcap {version=") and fields(first)["display"] == "mxwire"
        assert [fields(each)["value"] for each in rest] == NAMES
        assert all(each.startswith("interface {") for each in rest)

    @pytest.mark.parametrize("name", NAMES)
    def test_link_type_is_ethernet(self, ask, name):
        assert ask("--extcap-dlts", "--extcap-interface", name) == ["dlt {number=1}{name=EN10MB}{display=Ethernet}"]

    def test_all_options_of_simulate_are_offered_with_their_defaults(self, ask):
        lines = ask("--extcap-config", "--extcap-interface", "mxwire-sim")
        arguments = {fields(each)["call"]: fields(each) for each in lines if each.startswith("arg ")}
        offered = {f"--{each.name}".replace("_", "-") for each in simulate.params if each.name not in NOT_OFFERED}
        assert arguments.keys() | {"--color"} == offered | {"--color"}
        assert arguments["--hosts"] | {"type": "long", "default": "2", "group": "Hosts"} == arguments["--hosts"]
        assert arguments["--loss"]["type"] == "double" and arguments["--loss"]["range"] == "0,1"
        assert arguments["--workload"]["type"] == "selector" and arguments["--workload"]["default"] == "all-to-all"
        values = [fields(each)["value"] for each in lines if each.startswith("value ")]
        assert {"ping-pong", "stream", "many-to-one", "all-to-all", "mxoe", "omx:9000"} <= set(values)
        assert all(each.count("{") == each.count("}") for each in lines)

    def test_interfaces_of_the_computer_are_values_that_wireshark_can_read_again(self, ask):
        lines = ask("--extcap-config", "--extcap-interface", "mxwire-live")
        (argument,) = [each for each in lines if "{call=--interface}" in each]
        assert fields(argument) | {"type": "selector", "reload": "true", "required": "true"} == fields(argument)
        again = ask("--extcap-config", "--extcap-interface", "mxwire-live", "--extcap-reload-option", "interface")
        assert {"lo"} <= {fields(each)["value"] for each in again}
        assert all(each.startswith("value {arg=0}") for each in again)

    def test_a_capture_filter_is_refused_while_it_is_typed(self, ask):
        (line,) = ask("--extcap-interface", "mxwire-sim", "--extcap-capture-filter", "ip")
        assert "mxwire-sim has no capture filter" in line

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--extcap-dlts"], "--extcap-interface : the interfaces are mxwire-sim, mxwire-live, mxwire-ssh"),
            (["--extcap-dlts", "--extcap-interface", "eth0"], "--extcap-interface eth0: the interfaces are"),
            (["--capture", "--extcap-interface", "mxwire-sim"], "--capture needs --fifo PATH"),
            (
                ["--capture", "--extcap-interface", "mxwire-sim", "--fifo", "/nowhere/fifo"],
                "/nowhere/fifo cannot be opened: No such file or directory",
            ),
        ],
    )
    def test_mistakes_are_one_line(self, ask, capsys, words, message):
        with pytest.raises(SystemExit) as caught:
            ask(*words)
        errors = capsys.readouterr().err
        assert caught.value.code == 2 and message in errors and errors.count("\n") == 1

    def test_options_without_a_value_are_not_set(self):
        words = ["--seed", "7", "--gap", "", "--log-level=debug", "--extcap-cleanup-postkill", "--kill", "1"]
        assert extcap._chosen(words) == ["--seed", "7", "--kill", "1"]


class Pipe:
    """A pipe of Wireshark's, of which the other end is a capture."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "fifo"
        os.mkfifo(self.path)

    def start(self, interface: str, *options: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a capture into the pipe."""
        return subprocess.Popen(
            [*PROGRAM, "--capture", "--extcap-interface", interface, "--fifo", str(self.path), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | (environment or {}),
        )

    def read(self, target: Path) -> Path:
        """Read the capture to its end, into a file."""
        with self.path.open("rb") as pipe, target.open("wb") as file:
            shutil.copyfileobj(pipe, file)
        return target


@pytest.fixture
def pipe(tmp_path) -> Pipe:
    return Pipe(tmp_path)


class TestSimulatedNetwork:
    def test_the_capture_is_that_of_simulate(self, pipe, tmp_path):
        options = ["--seed", "7", "--messages", "5", "--loss", "0.1"]
        with pipe.start("mxwire-sim", *options) as process:
            made = pipe.read(tmp_path / "made.pcapng").read_bytes()
            out, errors = process.communicate(timeout=60)
        assert (process.returncode, out, errors) == (0, "", "")
        same = tmp_path / "same.pcapng"
        simulate.main([*options, "--pcap", str(same)], standalone_mode=False)
        assert made == same.read_bytes()
        with open_capture(same) as reader:
            frames = sum(len(each) for each in reader)
            assert frames > 20
        assert b"host0:0" in made and b"host1:0" in made

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--loss", "7"], "mxwire: Invalid value for '--loss': 7.0 is not in the range 0<=x<1; see mxwire"),
            (["--at", "5"], "mxwire: --at 5: the hosts are 0 to 1"),
            (["--extcap-capture-filter", "ip"], "mxwire: mxwire-sim has no capture filter"),
        ],
    )
    def test_a_mistake_ends_the_capture_with_one_line(self, pipe, tmp_path, options, message):
        """The reader must reach the end of the pipe, since dumpcap waits for a writer without limit."""
        with pipe.start("mxwire-sim", *options) as process:
            assert pipe.read(tmp_path / "made").stat().st_size == 0
            out, errors = process.communicate(timeout=60)
        assert process.returncode == 2 and errors.startswith(message) and errors.count("\n") == 1 and not out

    def test_a_reader_that_closes_the_pipe_ends_the_capture(self, pipe):
        with pipe.start("mxwire-sim", "--messages", "1000", "--no-judge") as process:
            with pipe.path.open("rb") as reading:
                assert len(reading.read(10_000)) == 10_000
            assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0


class TestRemoteHost:
    """With a program in place of ssh that runs the remote command here, and records its own arguments."""

    @pytest.fixture
    def programs(self, tmp_path) -> Path:
        folder = tmp_path / "programs"
        folder.mkdir()
        record = f'printf "%s\\n" "$@" >>{shlex.quote(str(tmp_path))}/'
        self._program(folder / "ssh", f'{record}ssh\nfor last; do :; done\nexec sh -c "$last"')
        for name in ("mxwire", "tcpdump"):
            self._program(folder / name, f"{record}{name}\nprintf capture")
        self._program(folder / "sudo", f'{record}sudo\n[ "$1" = -n ] && shift\nexec "$@"')
        return folder

    def _program(self, path: Path, script: str) -> None:
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def capture(self, pipe: Pipe, programs: Path, *options: str) -> tuple[int, str, bytes]:
        needed = ["--remote-host", "me@node7", "--remote-interface", "eth0", "--ethertype", "0x86DF"]
        with pipe.start("mxwire-ssh", *needed, *options, environment={"PATH": f"{programs}:/usr/bin:/bin"}) as process:
            made = pipe.read(pipe.path.with_name("made")).read_bytes()
            errors = process.communicate(timeout=60)[1]
        return process.returncode, errors, made

    def test_mxwire_is_preferred_and_tcpdump_is_used_without_it(self, pipe, programs, tmp_path):
        assert self.capture(pipe, programs) == (0, "", b"capture")
        assert (tmp_path / "mxwire").read_text().split() == [
            "capture",
            "-i",
            "eth0",
            "--ethertype",
            "0x86df",
            "-w",
            "-",
        ]
        words = (tmp_path / "ssh").read_text().splitlines()
        assert words[:-1] == ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "--", "me@node7"]
        (programs / "mxwire").unlink()
        assert self.capture(pipe, programs) == (0, "", b"capture")
        dumped = (tmp_path / "tcpdump").read_text().splitlines()
        assert dumped == [
            *["-i", "eth0", "-U", "-s", "0", "-w", "-"],
            "ether proto 0x86df or (vlan and ether proto 0x86df)",
        ]

    def test_options_reach_ssh_sudo_and_the_program(self, pipe, programs, tmp_path):
        chosen = str(programs / "tcpdump")
        options = ["--ssh-options", "-p 2222 -o 'User=a b'", "--remote-sudo", "--remote-program", chosen]
        assert self.capture(pipe, programs, *options) == (0, "", b"capture")
        assert (tmp_path / "ssh").read_text().splitlines()[:4] == ["-p", "2222", "-o", "User=a b"]
        assert (tmp_path / "sudo").read_text().splitlines()[:4] == ["-n", chosen, "-i", "eth0"]
        assert not (tmp_path / "mxwire").exists()

    @pytest.mark.parametrize("hostile", ["eth0; touch pwned", "$(touch pwned)", "`touch pwned`", "a' b"])
    def test_hostile_names_of_interfaces_stay_one_word(self, pipe, programs, tmp_path, monkeypatch, hostile):
        monkeypatch.chdir(tmp_path)
        assert self.capture(pipe, programs, "--remote-interface", hostile)[0] == 0
        assert (tmp_path / "mxwire").read_text().splitlines()[2] == hostile
        assert not (tmp_path / "pwned").exists()

    def test_a_program_that_fails_there_is_reported_here(self, pipe, programs):
        self._program(programs / "mxwire", "echo 'mxwire: eth0: no such interface' >&2; exit 2")
        assert self.capture(pipe, programs) == (2, "mxwire: eth0: no such interface\n", b"")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--ssh-options", "-i 'open"], 'mxwire: --ssh-options "-i \'open": No closing quotation'),
            (["--ethertype", "5"], "mxwire: Invalid value for '--ethertype': '5' is not an EtherType"),
        ],
    )
    def test_mistakes(self, pipe, programs, options, message):
        code, errors, made = self.capture(pipe, programs, *options)
        assert (code, made) == (2, b"") and errors.startswith(message) and errors.count("\n") == 1

    def test_ctrl_c(self, pipe, programs):
        self._program(programs / "ssh", 'kill -INT "$PPID"')
        assert self.capture(pipe, programs) == (130, "\nmxwire: interrupted\n", b"")

    def test_without_ssh(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(MxwireError, match=r"ssh cannot be run .*: install an SSH client"):
            extcap._capture_there(["--remote-host", "node7", "--remote-interface", "eth0"])


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A home in which the plugin is installed, with a configuration of its own, for any user."""
    found = tmp_path_factory.mktemp("home")
    open_to_all(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(found))
        patch.setenv("WIRESHARK_CONFIG_DIR", str(found / "config"))
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        install("personal", Tshark())
    for each in [found, *found.rglob("*")]:
        each.chmod(0o777 if each.is_dir() else 0o755)
    return found


def tshark(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run tshark as an unprivileged user, since as root it runs no programs from the user's own folder."""
    as_user = []
    if os.geteuid() == 0:
        # The user ``nobody`` may read all files: the interpreter can be in a home directory that only its owner may
        # enter.
        kept = "-all,+dac_read_search"
        as_user = ["setpriv", "--reuid=65534", "--clear-groups", f"--inh-caps={kept}", f"--ambient-caps={kept}"]
    environment = os.environ | {"HOME": str(home), "WIRESHARK_CONFIG_DIR": str(home / "config"), "TMPDIR": str(home)}
    command = [*as_user, "tshark", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=home)


@needs_scripts
class TestTshark:
    def test_it_lists_the_interfaces(self, installed):
        listed = tshark(installed, "-D").stdout
        for name in NAMES:
            assert re.search(rf"^\d+\. {name} \(MXoE: ", listed, re.M), listed

    def test_it_captures_in_the_simulated_network(self, installed):
        options = ["-o", "extcap.mxwire_sim.seed:7", "-o", "extcap.mxwire_sim.hosts:3"]
        done = tshark(installed, "-i", "mxwire-sim", "-c", "20", *options, "-P", "-w", "made.pcapng")
        lines = done.stdout.splitlines()
        assert done.returncode == 0 and len(lines) == 20, done.stderr
        assert all(" MXoE " in each for each in lines), lines
        assert b"host2:0" in (installed / "made.pcapng").read_bytes(), "the names of the hosts are in the file"

    def test_it_shows_a_mistake(self, installed):
        done = tshark(installed, "-i", "mxwire-sim", "-o", "extcap.mxwire_sim.loss:7")
        assert done.returncode and "Invalid value for '--loss': 7.0 is not in the range" in done.stderr

    def test_check_compares_the_lists(self, installed, monkeypatch, tmp_path):
        """Through a tshark that runs as another user, since ``plugin check`` runs it as the user of mxwire."""
        monkeypatch.setenv("HOME", str(installed))
        monkeypatch.setenv("WIRESHARK_CONFIG_DIR", str(installed / "config"))
        listed = tmp_path / "listed"
        listed.write_text("1. eth0\n" + "".join(f"{each}. {name} (…)\n" for each, name in enumerate(NAMES, 2)))
        script = tmp_path / "tshark"
        script.write_text(f'#!/bin/sh\n[ "$1" = -D ] && exec cat {listed}\nexec {Tshark().path} "$@"\n')
        script.chmod(0o755)
        report = Report(places=places(Tshark(script)))
        list_interfaces(report, Tshark(script))
        assert report.interfaces == NAMES and report.ok
        listed.write_text("1. eth0\n2. mxwire-simulation\n")
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        list_interfaces(report, Tshark(script))
        (problem,) = report.problems
        assert str(problem).startswith("tshark does not list mxwire-sim, mxwire-live, mxwire-ssh (it lists none")
