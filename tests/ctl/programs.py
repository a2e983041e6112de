#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the real ccoip-masterd, from its command line to its end, with the real pcclctl."""
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = os.environ.get("abs_top_builddir", ".")
AGENTD = os.path.join(BUILD, "pcclagentd/pcclagentd")
MASTERD = os.path.join(BUILD, "ccoip-masterd/ccoip-masterd")
PCCLCTL = os.path.join(BUILD, "pcclctl/pcclctl")
LIMIT = 20  # seconds, the bound of every wait


class Daemon:
    """A program that is killed at the end of the test if it still runs."""
    program = None

    def __init__(self, folder, *arguments, env=None, **popen):
        self.lines = []
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, **(env or {})}
        environment.pop("JOURNAL_STREAM", None)
        self.process = subprocess.Popen(
            [self.program, *arguments], stderr=subprocess.PIPE, env=environment, **popen)
        os.set_blocking(self.process.stderr.fileno(), False)
        self.pending = b""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def await_line(self, pattern):
        """Waits for a matching line among the lines that no earlier call has read. Returns its
        first group, or the match if it has no group."""
        end = time.monotonic() + LIMIT
        while True:
            while b"\n" in self.pending:
                line, self.pending = self.pending.split(b"\n", 1)
                self.lines.append(line.decode())
                found = re.search(pattern, self.lines[-1])
                if found:
                    return found[1] if found.groups() else found[0]
            if not select.select([self.process.stderr], [], [], end - time.monotonic())[0]:
                raise AssertionError(f"no line like {pattern!r} in {self.lines}")
            data = os.read(self.process.stderr.fileno(), 65536)
            if not data:
                raise AssertionError(f"ended without a line like {pattern!r}: {self.lines}")
            self.pending += data

    def wait(self):
        return self.process.wait(LIMIT)

    def end(self, signo=signal.SIGTERM):
        self.process.send_signal(signo)
        return self.wait()


class Master(Daemon):
    program = MASTERD

    def __init__(self, folder, *arguments, listen=1, **more):
        super().__init__(folder, *arguments, **more)
        self.addresses = [self.await_line(r"listening on (\S+)") for _ in range(listen)]


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **more)


def ctl(path, *arguments):
    return run(PCCLCTL, "--master", path, *arguments)


def open_connection(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)), timeout=LIMIT)


def refuses(address):
    """Returns whether a master listens at the address: a master answers strangers with a
    refusal."""
    with open_connection(address) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        data = b""
        while chunk := s.recv(4096):
            data += chunk
    return data.startswith(b"PCCF")


def test_signals_end_the_master_cleanly(folder):
    for signo in (signal.SIGTERM, signal.SIGINT):
        with Master(folder, "--listen", "127.0.0.1:0") as m, open_connection(m.addresses[0]) as s:
            assert m.end(signo) == 0
            assert s.recv(1) == b""


def test_master_listens_at_several_addresses(folder):
    with Master(folder, "--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0", listen=2) as m:
        assert len(set(m.addresses)) == 2
        assert all(refuses(a) for a in m.addresses)
        assert m.end() == 0


def test_ipv6_any_address_also_accepts_ipv4(folder):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return
    with Master(folder, "--listen", "[::]:0") as m:
        port = m.addresses[0].rsplit(":", 1)[1]
        assert refuses("[::1]:" + port) and refuses("127.0.0.1:" + port)


def test_any_addresses_of_ipv4_and_ipv6_do_not_conflict(folder):
    """[::] alone also accepts IPv4. A master can listen at 0.0.0.0 and [::] together."""
    try:
        with socket.create_server(("::", 0), family=socket.AF_INET6) as s:
            port = s.getsockname()[1]
    except OSError:
        return
    both = [f"0.0.0.0:{port}", f"[::]:{port}"]
    for first, second in (both, both[::-1]):
        with Master(folder, "--listen", first, "--listen", second) as m:
            assert refuses(f"127.0.0.1:{port}") and refuses(f"[::1]:{port}")
            assert m.end() == 0


def test_agent_without_socket_folder_names_the_remedy(folder):
    path = os.path.join(folder, "missing", "agent.sock")
    r = run(AGENTD, "--socket", path)
    assert r.returncode == 69 and path in r.stderr, r
    assert "--socket" in r.stderr and "systemd-tmpfiles --create" in r.stderr, r


def test_admin_socket_answers_and_a_stale_one_is_replaced(folder):
    path = os.path.join(folder, "admin.sock")
    with Master(folder, "--listen", "127.0.0.1:0", "--admin-socket", path) as m:
        m.await_line("pcclctl finds")
        assert refuses(m.addresses[0])
        r = ctl(path, "--json", "status")
        assert r.returncode == 0, r.stderr
        answer = json.loads(r.stdout)
        assert answer["daemon"] == "ccoip-masterd"
        status, = answer["status"]
        assert status["refused"] == 1 and status["accepted"] == 0 and len(status["run"]) == 32
        assert json.loads(ctl(path, "peers", "--json").stdout)["peers"] == []
        assert ctl(path, "ops").stdout == "no ops\n"
        assert "epoch:" in ctl(path, "status").stdout
        assert os.stat(path).st_mode & 0o777 == 0o660
        second = run(MASTERD, "--listen", "127.0.0.1:0", "--admin-socket", path)
        assert second.returncode == 69 and path in second.stderr
        assert ctl(path, "status").returncode == 0
        m.process.kill()
        m.wait()
    assert ctl(path, "status").returncode == 69
    with Master(folder, "--listen", "127.0.0.1:0", "--admin-socket", path) as m:
        m.await_line("pcclctl finds")  # a stale file is replaced
        assert ctl(path, "status").returncode == 0
        assert m.end() == 0
    assert not os.path.exists(path)


def test_pcclctl_reports_a_stopped_daemon(folder):
    path = os.path.join(folder, "admin.sock")
    with Master(folder, "--listen", "127.0.0.1:0", "--admin-socket", path) as m:
        m.await_line("pcclctl finds")
        m.process.send_signal(signal.SIGSTOP)
        r = ctl(path, "status")
        assert r.returncode == 69 and "did not answer within 5 s" in r.stderr and path in r.stderr


def test_default_admin_socket_is_in_the_runtime_folder(folder):
    leash, end = socket.socketpair()
    with Master(folder, "--listen", "127.0.0.1:0", "--parent-fd", str(end.fileno()),
                pass_fds=[end.fileno()]) as m:
        port = m.addresses[0].rsplit(":", 1)[1]
        path = os.path.join(folder, "pccl", f"master-{port}-admin.sock")
        assert m.await_line(r"pcclctl finds this master at (\S+)") == path
        assert ctl(path, "status").returncode == 0
        end.close()
        assert m.process.poll() is None
        leash.close()
        assert m.wait() == 0
    assert not os.path.exists(path)


def test_admin_socket_is_in_tmpdir_without_a_runtime_folder(folder):
    """The master has the environment variables of a cron job, or of a process in a container."""
    own = os.path.join(folder, f"pccl-{os.geteuid()}")
    words = ("--listen", "127.0.0.1:0", "--parent-fd")
    leash, end = socket.socketpair()
    env = {"XDG_RUNTIME_DIR": "", "TMPDIR": folder}
    with Master(folder, *words, str(end.fileno()), env=env, pass_fds=[end.fileno()]) as m:
        port = m.addresses[0].rsplit(":", 1)[1]
        path = os.path.join(own, f"master-{port}-admin.sock")
        assert m.await_line(r"pcclctl finds this master at (\S+)") == path
        assert os.stat(own).st_mode & 0o777 == 0o700
        assert ctl(path, "status").returncode == 0
    os.chmod(own, 0o755)
    with Master(folder, *words, str(end.fileno()), env=env, pass_fds=[end.fileno()]) as m:
        assert m.await_line(r"no admin socket: (\S+) is not a folder that only this user can use") == own
    leash.close()
    end.close()


def test_master_listens_on_a_handed_over_socket(folder):
    with socket.create_server(("127.0.0.1", 0)) as s:
        address = f"127.0.0.1:{s.getsockname()[1]}"
        with Master(folder, "--listen-fd", str(s.fileno()), pass_fds=[s.fileno()]) as m:
            assert m.addresses == [address]
            assert refuses(address)
            assert m.end() == 0
        with socket.socket() as other:
            r = run(MASTERD, "--listen-fd", str(other.fileno()), pass_fds=[other.fileno()])
            assert r.returncode == 64 and "not a listening TCP socket" in r.stderr


BOUNDS = (("link_timeout_ms", 2000, 90000), ("stream_timeout_ms", 2000, 90000),
          ("stuck_timeout_ms", 1000, 90000), ("new_link_timeout_ms", 500, 60000),
          ("round_timeout_ms", 2000, 300000))


def test_wrong_arguments_are_refused(folder):
    del folder
    for arguments in (["--nonsense"], ["x"], ["--listen", "name:1"], ["--listen-fd", "x"],
                      ["--log-level", "loud"], ["--listen"],
                      ["--admin-socket", ""], ["--listen-fd", "5", "--parent-fd", "5"]):
        r = run(MASTERD, *arguments)
        assert r.returncode == 64 and "--help" in r.stderr, (arguments, r)
    r = run(MASTERD, "--listen", "1.2.3.4:99999")
    assert r.returncode == 64 and "PORT from 0 to 65535" in r.stderr, r
    r = run(MASTERD, "--listen", "[fe80::1]:1")
    assert r.returncode == 64 and "a link-local address (fe80::/10)" in r.stderr, r
    for seconds in ("0.49", "600.1", "-1", "+1", "0x1", "1e1", "nan", "inf", "1s", "1.2.3", ".", ""):
        r = run(MASTERD, "--host-timeout", seconds)
        said = f'--host-timeout is "{seconds}", it must be a number of seconds from 0.5 to 600'
        assert r.returncode == 64 and said in r.stderr, (seconds, r)
    for key, least, most in BOUNDS:
        for ms in (str(least - 1), str(most + 1), "-1", "2.5", "", "soon"):
            r = run(MASTERD, f"--{key.replace('_', '-')}", ms)
            said = f'is "{ms}", it must be a number of milliseconds from {least} to {most}'
            assert r.returncode == 64 and f"--{key.replace('_', '-')} {said}" in r.stderr, r
    for options, said in (
            ("--link-timeout-ms 8000 --stream-timeout-ms 7999",
             "stream_timeout_ms is 7999: it must be at least 8000, the value of link_timeout_ms"),
            ("--new-link-timeout-ms 3000 --round-timeout-ms 6999",
             "round_timeout_ms is 6999: it must be at least 7000: twice new_link_timeout_ms, plus a second")):
        r = run(MASTERD, *options.split())
        assert r.returncode == 64 and said in r.stderr, r
    r = run(MASTERD, "--help")
    assert r.returncode == 0 and "--parent-fd" in r.stdout and not r.stderr
    r = run(MASTERD, "--version")
    assert r.returncode == 0 and r.stdout.startswith("ccoip-masterd ")


def test_port_in_use_is_reported(folder):
    del folder
    with socket.create_server(("127.0.0.1", 0)) as s:
        address = f"127.0.0.1:{s.getsockname()[1]}"
        r = run(MASTERD, "--listen", address)
        assert r.returncode == 69 and address in r.stderr and "in use" in r.stderr


def user_of(folder):
    """Returns an environment in which `folder` has the sockets of this user's daemons. The admin
    socket of a master that a program has started lies there."""
    return {"XDG_RUNTIME_DIR": folder, "TMPDIR": folder}


def test_second_master_with_the_same_port_has_no_admin_socket(folder):
    """Two addresses with the same port have the same default path for the admin socket."""
    leash, end = socket.socketpair()
    more = {"env": user_of(folder), "pass_fds": [end.fileno()]}
    words = ("--parent-fd", str(end.fileno()), "--listen")
    with Master(folder, *words, "127.0.0.1:0", **more) as m:
        path = m.await_line(r"pcclctl finds this master at (\S+)")
        port = m.addresses[0].rsplit(":", 1)[1]
        with Master(folder, *words, f"127.0.0.2:{port}", **more) as other:
            assert other.await_line(r"warning: no admin socket (\S+): .*; set --admin-socket$") == path
            assert other.end() == 0
        assert ctl(path, "status").returncode == 0
    leash.close()
    end.close()


def reset_here(folder, *arguments):
    return run(PCCLCTL, *arguments, "reset", env={**os.environ, **user_of(folder)})


def test_reset_finds_the_master(folder):
    """On the host of the master, pcclctl reset needs no name of a socket, as the manual page says."""
    if os.path.exists("/run/pccl/master-admin.sock"):
        return  # the master of the system must not be reset
    own = os.path.join(folder, "pccl")
    r = reset_here(folder)
    assert r.returncode == 69 and "no master listens at" in r.stderr and own in r.stderr, r
    assert "--master PATH" in r.stderr and "master-admin.sock" in r.stderr, r
    leash, end = socket.socketpair()
    words = ("--listen", "127.0.0.1:0", "--parent-fd", str(end.fileno()))
    more = {"env": user_of(folder), "pass_fds": [end.fileno()]}
    with Master(folder, *words, **more) as first:
        first_path = first.await_line(r"pcclctl finds this master at (\S+)")
        assert os.path.dirname(first_path) == own
        r = reset_here(folder, "--json")
        assert r.returncode == 0 and json.loads(r.stdout)["reset"][0]["kicked"] == 0, r
        first.await_line("an operator resets the run")
        r = run(PCCLCTL, "--agent", first_path, "reset")
        assert r.returncode == 64 and "this command is for a master" in r.stderr, r
        with Master(folder, *words, **more) as second:
            second_path = second.await_line(r"pcclctl finds this master at (\S+)")
            r = reset_here(folder)
            assert r.returncode == 64 and "name one with --master" in r.stderr, r
            assert first_path in r.stderr and second_path in r.stderr, r
            assert ctl(second_path, "reset").returncode == 0
            second.process.kill()
            second.wait()
        assert os.path.exists(second_path)
        r = reset_here(folder)  # the socket of a killed master does not count
        assert r.returncode == 0, r
    leash.close()
    end.close()


def refused_state_dir(state_dir):
    r = run(MASTERD, "--listen", "127.0.0.1:0", "--state-dir", state_dir)
    assert "limit" not in r.stderr and "cannot start" not in r.stderr, r
    return r


def test_unusable_state_folders_are_refused(folder):
    """All errors about the state folder are permanent, except that another master uses the
    folder."""
    used = os.path.join(folder, "used")
    with Master(folder, "--listen", "127.0.0.1:0", "--state-dir", used):
        r = refused_state_dir(used)
        assert r.returncode == 69, r
        assert f"cannot use {used}/run.journal: another master uses it" in r.stderr, r
    absent = os.path.join(folder, "absent/too/deep")
    r = refused_state_dir(absent)
    assert r.returncode == 78, r
    assert f"cannot use {absent}: its parent folder does not exist: create it" in r.stderr, r
    file = os.path.join(folder, "file")
    with open(file, "w", encoding="utf-8") as f:
        f.write("x")
    for path in (file, os.path.join(file, "below")):
        r = refused_state_dir(path)
        assert r.returncode == 78 and f"cannot use {path}: it is not a folder, or a part of its path is a file" in r.stderr, r
    other = os.path.join(folder, "other")
    os.mkdir(other)
    with open(os.path.join(other, "run.journal"), "w", encoding="utf-8") as f:
        f.write("This is not a journal at all.\n")
    r = refused_state_dir(other)
    assert r.returncode == 78 and f"cannot use {other}/run.journal: this is no journal" in r.stderr, r
    with Master(folder, "--listen", "127.0.0.1:0", "--state-dir", used) as m:
        assert m.end() == 0


def test_configuration_is_read_and_its_errors_are_reported(folder):
    path = os.path.join(folder, "m.conf")
    admin = os.path.join(folder, "a.sock")

    def write(text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    write(f"# comment\n[master]\nlisten = 127.0.0.1:0\nlisten = 127.0.0.2:0\n"
          f"admin_socket = {admin}\nlog_level = debug\nhost_timeout = 600\n")
    with Master(folder, "--config", path, listen=2) as m:
        m.await_line("pcclctl finds")
        assert ctl(admin, "status").returncode == 0
    with Master(folder, "--config", path, "--listen", "127.0.0.3:0", "--host-timeout", "0.5") as m:
        assert m.addresses[0].startswith("127.0.0.3:")
        m.await_line("pcclctl finds")  # now all addresses have been opened
        assert sum("listening" in x for x in m.lines) == 1
        assert m.end() == 0
    for text, line, what in (("[master]\nlisten = here\n", 2, "here"),
                             ("[master]\n\nport = 1\n", 3, "port"),
                             ("[other]\nlisten = 1.2.3.4:5\n", 2, "other"),
                             ("[master]\nlog_level = loud\n", 2, "loud"),
                             ("[master]\nhost_timeout = 0\n", 2, "host_timeout is \"0\", it must be "
                              "a number of seconds from 0.5 to 600"),
                             *((f"[master]\n{key} = {least - 1}\n", 2, f"{key} is \"{least - 1}\", it "
                                f"must be a number of milliseconds from {least} to {most}")
                               for key, least, most in BOUNDS),
                             ("[master]\nnonsense\n", 2, "key")):
        write(text)
        r = run(MASTERD, "--config", path)
        assert r.returncode == 78 and f"line {line}:" in r.stderr and what in r.stderr, r
    write("[master]\nnew_link_timeout_ms = 3000\n")  # rounds get a longer timeout automatically
    with Master(folder, "--config", path, "--listen", "127.0.0.1:0") as m:
        assert m.end() == 0
    r = run(MASTERD, "--config", path, "--round-timeout-ms", "6000")
    assert r.returncode == 78 and "round_timeout_ms is 6000: it must be at least 7000" in r.stderr, r
    r = run(MASTERD, "--config", path + ".missing")
    assert r.returncode == 66 and path + ".missing" in r.stderr
    r = run(MASTERD, "--config", folder)
    assert r.returncode == 66 and f"cannot read {folder}: it is a folder" in r.stderr, r


def test_master_notifies_systemd(folder):
    with open(os.path.join(BUILD, "config.h"), encoding="utf-8") as f:
        if "#define HAVE_SYSTEMD 1" not in f.read():
            return
    path = os.path.join(folder, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(LIMIT)
        env = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"}
        with Master(folder, "--listen", "127.0.0.1:0", env=env) as m:
            assert s.recv(4096).startswith(b"READY=1\nSTATUS=")
            for _ in range(2):
                beat = s.recv(4096)
                assert beat.startswith(b"WATCHDOG=1\nSTATUS=0 agents"), beat
            m.process.send_signal(signal.SIGTERM)
            while (text := s.recv(4096)) != b"STOPPING=1":
                assert text.startswith(b"WATCHDOG"), text
            assert m.wait() == 0


def test_master_takes_sockets_of_systemd(folder):
    with open(os.path.join(BUILD, "config.h"), encoding="utf-8") as f:
        if "#define HAVE_SYSTEMD 1" not in f.read():
            return
    admin = os.path.join(folder, "a.sock")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(admin)
        unix.listen()

        def place():
            """Places the descriptors as systemd does: from 3 on, with the pid of the process."""
            high = [os.dup(os.dup(s.fileno())) for s in (tcp, unix)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
            os.environ.update(LISTEN_FDS="2", LISTEN_PID=str(os.getpid()))
            os.execv(MASTERD, [MASTERD])

        pid = os.fork()
        if pid == 0:
            try:
                place()
            finally:
                os._exit(99)
        try:
            assert refuses(f"127.0.0.1:{tcp.getsockname()[1]}")
            assert ctl(admin, "status").returncode == 0
        finally:
            os.kill(pid, signal.SIGTERM)
            _, status = os.waitpid(pid, 0)
        assert status == 0


def main(names):
    passed = failed = 0
    for name, test in sorted(names.items()):
        if not name.startswith("test_"):
            continue
        with tempfile.TemporaryDirectory(prefix="pccl-ctl-") as folder:
            try:
                test(folder)
                passed += 1
            except Exception:  # the other tests must still run
                failed += 1
                print(f"{name} failed")
                traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(globals()))
