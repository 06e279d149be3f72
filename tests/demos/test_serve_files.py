"""The files of demos/serve are read as their programs read them, and everything that they name exists."""

import configparser
import json
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.sources import ROOT
from tests.waiting import wait_in_task

FOLDER = ROOT / "demos" / "serve"
USER = 10001


@pytest.fixture(scope="module")
def unit() -> dict[str, dict[str, list[Any]]]:
    """Section -> key -> values, in order; a key of systemd may be repeated."""

    class Several(dict):
        def __setitem__(self, key, value):
            if isinstance(value, list) and isinstance(self.get(key), list):
                self[key].extend(value)
            else:
                super().__setitem__(key, value)

    parser = configparser.RawConfigParser(dict_type=Several, strict=False, delimiters=("=",))
    parser.optionxform = str
    parser.read(FOLDER / "pulse.service")
    return {
        name: {key: value.split("\n") for key, value in parser[name].items()} for name in parser.sections()
    }


@pytest.fixture(scope="module")
def manifests() -> dict[str, dict[str, dict[Any, Any] | str]]:
    """The manifests by their kinds."""
    yaml = pytest.importorskip("yaml", reason="needs the extra test")
    documents = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
    assert all({"apiVersion", "kind", "metadata"} <= set(document) for document in documents)
    return {document["kind"]: document for document in documents}


@pytest.fixture(scope="module")
def settings() -> Any:
    from streaming.serve.settings import read_settings

    return read_settings(FOLDER / "server.toml")


def options_of(command: str) -> set[str]:
    """The names of a command's options."""
    import typer.main

    from streaming.cli.commands import app

    group = typer.main.get_command(app)
    return {name for param in group.commands[command].params for name in param.opts}


def assert_command(words: list[str]) -> None:
    """``pulse serve …`` as a program takes it."""
    program, command, *rest = words
    assert Path(program).name == "pulse"
    assert command == "serve"
    used = {word for word in rest if word.startswith("--")}
    assert used
    assert used <= options_of("serve")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile: word and rest of each instruction."""
    text = re.sub(r"\\\n\s*", " ", (FOLDER / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_the_settings_configure_a_server(settings: Any) -> None:
    assert settings.host == "0.0.0.0"
    assert settings.models[0].id == "denoiser"


def test_the_unit_starts_a_server_that_may_drain(unit: dict[str, Any], settings: Any) -> None:
    service = unit["Service"]
    assert_command(service["ExecStart"][0].split())
    assert service["KillSignal"] == ["SIGTERM"]
    assert int(service["TimeoutStopSec"][0]) > settings.drain_s
    state = f"/var/lib/{service['StateDirectory'][0]}/"
    assert f"--checkpoints {state}checkpoints" in service["ExecStart"][0]
    assert f"{state}checkpoints" in service["ExecStartPre"][0]
    assert service["Environment"] == [f"PULSE_CACHE=/var/cache/{service['CacheDirectory'][0]}"]
    assert int(service["LimitRTPRIO"][0]) > 0
    assert service["LimitMEMLOCK"] == ["infinity"]
    assert "MemoryDenyWriteExecute" not in service, "kernels are compiled at run time"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_knows_every_line_of_the_unit() -> None:
    process = subprocess.run(
        ["systemd-analyze", "verify", FOLDER / "pulse.service"], capture_output=True, text=True, timeout=60
    )
    lines = [line for line in process.stderr.splitlines() if "is not executable" not in line]
    assert not [line for line in lines if "pulse.service" in line], "only the program is not installed here"


def test_the_image_copies_existing_files() -> None:
    lines = instructions()
    stages = [rest.split(" AS ")[-1] for word, rest in lines if word == "FROM"]
    for word, rest in lines:
        if word == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            assert all((ROOT / source).exists() for source in sources), rest
        elif word == "COPY":
            assert rest.removeprefix("--from=").split()[0] in stages


def test_the_image_runs_as_its_own_user() -> None:
    lines = instructions()
    assert dict(lines)["USER"] == str(USER)
    assert f"--uid {USER}" in " ".join(rest for _, rest in lines)
    words = [word for word, _ in lines]
    assert words.index("USER") < words.index("ENTRYPOINT")


def test_the_image_starts_and_probes_the_server(settings: Any) -> None:
    lines = dict(instructions())
    assert lines["EXPOSE"] == str(settings.port)
    assert f":{settings.port}/health" in lines["HEALTHCHECK"]
    assert lines["STOPSIGNAL"] == "SIGTERM"
    command = [*json.loads(lines["ENTRYPOINT"]), *json.loads(lines["CMD"])]
    assert_command(command)
    assert command[-1] == lines["COPY"].split()[-1], "the settings are where they were copied to"


def test_commands_of_the_image_in_exec_form_are_json() -> None:
    commands = [
        json.loads(rest)
        for word, rest in instructions()
        if word in ("RUN", "ENTRYPOINT", "CMD") and rest.startswith("[")
    ]
    assert len(commands) >= 2
    assert all(isinstance(part, str) for command in commands for part in command)


def test_the_image_installs_all_that_a_server_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (build,) = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    (extra,) = re.findall(r"\.\[(\w+)\]", build)
    assert extra == "serve"
    assert extra in project["project"]["optional-dependencies"]
    assert {project["project"]["readme"], *project["project"]["license-files"]} <= set(
        " ".join(rest for word, rest in instructions() if word == "COPY").split()
    )


def test_the_pods_are_probed_and_have_time_to_drain(
    manifests: dict[str, dict[str, dict[Any, Any] | str]], tmp_path: Path
) -> None:
    from streaming.serve.settings import read_settings

    path = tmp_path / "server.toml"
    path.write_text(manifests["ConfigMap"]["data"]["server.toml"])
    settings = read_settings(path)
    pod = manifests["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert_command(["pulse", *container["args"]])
    (port,) = container["ports"]
    assert port["containerPort"] == settings.port
    for name in ("startupProbe", "readinessProbe"):
        assert container[name]["httpGet"] == {"path": "/health", "port": port["name"]}
    assert "httpGet" not in container["livenessProbe"], "/health is 503 while a server drains"
    assert container["livenessProbe"]["tcpSocket"]["port"] == port["name"]
    sleep = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    readiness = container["readinessProbe"]
    assert sleep > readiness["periodSeconds"] * readiness["failureThreshold"]
    assert pod["terminationGracePeriodSeconds"] > sleep + settings.drain_s
    assert pod["securityContext"]["runAsUser"] == USER
    assert pod["securityContext"]["runAsNonRoot"]


def test_every_volume_is_there(manifests: dict[str, dict[str, dict[Any, Any] | str]]) -> None:
    pod = manifests["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == set(volumes)
    assert volumes["settings"]["configMap"]["name"] == manifests["ConfigMap"]["metadata"]["name"]
    claim = volumes["checkpoints"]["persistentVolumeClaim"]["claimName"]
    assert claim == manifests["PersistentVolumeClaim"]["metadata"]["name"]
    assert manifests["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]
    assert mounts["checkpoints"] in manifests["ConfigMap"]["data"]["server.toml"]
    assert (
        mounts["cache"]
        == {variable["name"]: variable["value"] for variable in container["env"]}["PULSE_CACHE"]
    )
    assert mounts["settings"] == str(Path(container["args"][-1]).parent)


def test_every_label_selects_the_pods(manifests: dict[str, dict[str, dict[Any, Any] | str]]) -> None:
    pod = manifests["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    assert manifests["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    service = manifests["Service"]["spec"]
    assert service["selector"] == labels
    assert service["sessionAffinity"] == "ClientIP"
    assert service["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels


@pytest.mark.slow
def test_sigterm_drains_as_the_files_describe(tmp_path: Path) -> None:
    """The open stream continues and is flushed, /health says 503, new streams are refused, the exit code is 0."""
    import anyio
    import httpx
    import numpy as np

    from pulse.client import ClientError, connect

    text = (
        (FOLDER / "server.toml")
        .read_text()
        .replace("port = 8080", "port = 0")
        .replace("0.0.0.0", "127.0.0.1")
    )
    (tmp_path / "server.toml").write_text(text)
    command = [sys.executable, "-c", "from streaming.cli import main; main()", "serve"]
    process = subprocess.Popen(
        [*command, "--config", tmp_path / "server.toml"], stderr=subprocess.PIPE, text=True
    )
    try:
        line = next(line for line in process.stderr if '"url": "' in line)
        url = line.split('"url": "')[1].split('"')[0]
        ws = url.replace("http", "ws")

        async def drain():
            async with connect(ws) as stream:
                await stream.send(np.zeros(1600, np.float32))
                assert httpx.get(f"{url}/health").status_code == 200
                process.send_signal(signal.SIGTERM)
                await wait_in_task(lambda: httpx.get(f"{url}/health").status_code == 503, "the server drains")
                with pytest.raises(ClientError, match=r"about to end|has closed"):
                    async with connect(ws):
                        pass
                await stream.send(np.zeros(1600, np.float32))
                outputs = await stream.flush()
                assert outputs["denoised"].shape == (1, 3200)

        anyio.run(drain)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
