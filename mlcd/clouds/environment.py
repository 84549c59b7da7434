"""The environment variables of a job's processes: an allow-list of MLCD's own variables, and those that the job names.

Other people read a job's log, and on a service the jobs belong to its members. So a job inherits a variable only if it
is on the list: cloud keys, database passwords and tokens never reach it.
"""

import os
import re
from collections.abc import Mapping

from mlcd.core.errors import UserError
from mlcd.core.job import SUBMITTED, Job

USER = ("HOME", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
LANGUAGE = ("LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE")
FORMATS = ("LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME")
PROGRAMS = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV")
PYTHON = ("PYTHONPATH", "PYTHONHASHSEED")
DEVICES = ("CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
CACHES = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TORCH_HOME", "XDG_CACHE_HOME")
CERTIFICATES = ("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE")
PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy", "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
INHERITED = frozenset((*USER, *LANGUAGE, *FORMATS, *PROGRAMS, *PYTHON, *DEVICES, *CACHES, *CERTIFICATES, *PROXIES))
"""The allow-list. Whole names, no patterns: NVIDIA_API_KEY is a secret. A job that needs more lists it in `envs:`."""
URL_WITH_USER = r"://[^/]*@"
"""A proxy's URL may contain a password. Such a variable is not passed on."""


def inherited(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of this process that every job's process gets."""
    return {
        name: value for name, value in environ.items() if name in INHERITED and re.search(URL_WITH_USER, value) is None
    }


def job_variables(job: Job, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables in a job's `envs:`. One without a value (`HF_TOKEN: null`) is copied from this process."""
    envs = {str(name): value for name, value in (job.task.get("envs") or {}).items()}
    inherited_values = _from_environment("envs", [name for name, value in envs.items() if value is None], job, environ)
    return {name: inherited_values.get(name, str(value)) for name, value in envs.items()}


def secrets(job: Job, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables in a job's `secrets:`. The job stores only their names; the values come from the environment."""
    return _from_environment("secrets", [str(name) for name in job.task.get("secrets") or {}], job, environ)


def check_environment(job: Job, environ: Mapping[str, str] = os.environ) -> None:
    """Raise `UserError` if a variable that the job names is not set."""
    job_variables(job, environ)
    secrets(job, environ)


def _from_environment(key: str, names: list[str], job: Job, environ: Mapping[str, str]) -> dict[str, str]:
    if names and job.folder == SUBMITTED:  # the environment here is the service's, not the member's
        raise UserError(f"{key}: {', '.join(names)}: a service passes none of its variables on; write the value")
    missing = [name for name in names if name not in environ]
    if missing:
        raise UserError(f"{key}: {', '.join(missing)} is not set; export it, or pass --env {missing[0]}=VALUE")
    return {name: environ[name] for name in names}
