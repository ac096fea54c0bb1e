# keyhole.py
"""Reads the variables of a project from Keyhole. Python 3.9 or newer, no packages: copy this file into your program.

A call returns all variables of an environment, or raises KeyholeError; watch() goes on to follow their changes. Errors
never contain the key or a value.
"""

import email.utils
import http.client
import ipaddress
import json
import math
import os
import random
import re
import socket
import threading
import time
import urllib.parse
from datetime import timezone

ANSWER_BYTES_MAX = 16 * 1024 * 1024
REFUSALS = (
    "invalid_options unauthorized plan_required surface_required resource_required environment_not_in_scope "
    "project_not_found"
).split()
WAIT_SECONDS = 25  # many proxies cut a request that takes 30


class KeyholeError(Exception):
    """Why there are no values: a code of the API, or unreachable, redirected, invalid_answer or invalid_options."""

    def __init__(self, code, message, request_id=None, retry_after=None):
        super().__init__(f"{code}: {message}" + (f" (request {request_id})" if request_id else ""))
        self.code, self.request_id, self.retry_after = code, request_id, retry_after


def variables(project, environment, *, url=None, key=None, timeout=30.0, wait=30.0):
    """The values by name. `timeout` is for one request, `wait` for all tries together, both in seconds.

    Without `url` and `key`, KEYHOLE_URL and KEYHOLE_API_KEY or KEYHOLE_API_KEY_FILE are used.
    """
    deadline = time.monotonic() + wait
    tries = 0
    while True:
        try:
            return _ask(project, environment, url, key, timeout)[0]
        except KeyholeError as error:
            if error.code not in ("rate_limited", "unavailable"):
                raise
            delay = error.retry_after if error.retry_after is not None else min(2**tries, 30)
            delay *= 1 + random.random() / 10  # so that many who wait do not return together
            if time.monotonic() + delay > deadline:
                raise
        tries += 1
        time.sleep(delay)


def watch(project, environment, *, url=None, key=None, timeout=30.0, every=30.0, stale=300.0):
    """Yields the values by name, at once and whenever they change.

    A server that waits for changes tells them at once. Any other is asked after `every` seconds. Raises KeyholeError if
    the first read fails, if the server refuses the key or the project, or if no read succeeded for `stale` seconds.
    """
    every = max(every, 1.0)
    seconds = int(min(every, WAIT_SECONDS))
    values = tag = None
    seen = time.monotonic()
    may_wait = True
    while True:
        began = time.monotonic()
        try:
            found, tag, waited = _ask_waiting(project, environment, url, key, timeout, tag, seconds)
            seen = time.monotonic()
            # One answer without the header may be the first, or that of a server that stops.
            delay = max(began + 1 - seen, 0) if waited or may_wait else every
            may_wait = waited
        except KeyholeError as error:
            if values is None or error.code in REFUSALS or time.monotonic() - seen > stale:
                raise
            found, may_wait = None, True
            # The server is asked before the values are too old, whatever it says.
            left = stale - (time.monotonic() - seen)
            delay = max(every, min(error.retry_after or 0, left))
        if found is not None and found != values:
            values = found
            yield dict(values)
        time.sleep(delay + random.random() * max(delay, 5) / 10)  # so that many do not ask together


def _ask_waiting(project, environment, url, key, timeout, tag, seconds):
    """Asks, and if the wait for a change made that fail, asks again without one."""
    try:
        return _ask(project, environment, url, key, timeout, tag, seconds)
    except KeyholeError as error:
        if tag is None or not re.fullmatch("unreachable|unauthorized|http_5..", error.code):
            raise
    return _ask(project, environment, url, key, timeout, tag)


def _ask(project, environment, url, key, timeout, tag=None, seconds=0):
    """The values, None if they are those of the tag; their tag; and whether the server waited for a change."""
    scheme, host, port, root = _parse_url(url or os.environ.get("KEYHOLE_URL", ""))
    key = key or _read_key()
    if not re.fullmatch(r"[!-~]+", key):
        raise KeyholeError("invalid_options", "the API key is missing, or has characters that no key has")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", project):
        raise KeyholeError("invalid_options", "the project is a slug, such as web")
    if environment not in ("development", "staging", "production"):
        raise KeyholeError("invalid_options", "the environment is development, staging or production")
    path = f"{root}/projects/{project}/variables?environment={environment}"
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
    if tag is not None:
        headers["If-None-Match"] = tag
        if seconds > 0:
            headers["Prefer"] = f"wait={seconds}"
            timeout += seconds
    response, body = _get(scheme, host, port, path, headers, timeout)
    waited = response.headers.get("Preference-Applied", "").startswith("wait=")
    if response.status == 304 and tag is not None:
        return None, tag, waited
    if response.status != 200:
        raise _refusal(response, body, key)
    found = response.headers.get("ETag", "")
    return _parse(body, environment), found if re.fullmatch(r'(W/)?"[!#-~]+"', found) else None, waited


def _get(scheme, host, port, path, headers, timeout):
    """The answer and its body. http.client follows no redirect and uses no proxy."""
    connect = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    connection = connect(host, port, timeout=timeout)
    deadline = time.monotonic() + timeout
    failure = timer = None
    try:
        connection.connect()
        # The timeout of a socket is for each read, and a server may send one byte at a time.
        timer = threading.Timer(timeout, _shut_down, (connection.sock,))
        timer.daemon = True
        timer.start()
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = bytearray()
        while chunk := response.read1(65536):
            body += chunk
            if len(body) > ANSWER_BYTES_MAX:
                raise KeyholeError("invalid_answer", "the answer is too long")
        if time.monotonic() > deadline:
            raise KeyholeError("unreachable", "the answer took too long")
        if response.length:
            raise KeyholeError("unreachable", "the answer was cut off")
    except OSError as error:
        failure = KeyholeError("unreachable", str(error))
    except http.client.HTTPException as error:
        failure = KeyholeError("unreachable", type(error).__name__)  # its text may quote the answer
    finally:
        if timer:
            timer.cancel()
        connection.close()
    if failure:
        raise failure
    return response, bytes(body)


def _shut_down(connected):
    """Ends the connection under whatever reads it."""
    try:
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        pass  # it is closed already


def _refusal(response, body, key):
    request_id = response.headers.get("X-Request-Id", "")
    if not re.fullmatch(r"[\w.-]{1,64}", request_id) or key in request_id:
        request_id = None
    if 300 <= response.status < 400:
        return KeyholeError("redirected", "the server answered with a redirect, which is not followed", request_id)
    try:
        code = json.loads(body)["code"]
    except (ValueError, TypeError, KeyError, RecursionError):
        code = None
    if not isinstance(code, str) or not re.fullmatch(r"[a-z_]{1,40}", code):
        code = f"http_{response.status}"
    retry_after = _parse_retry_after(response.headers.get("Retry-After", ""), time.time())
    return KeyholeError(code, f"the server answered {response.status}", request_id, retry_after)


def _parse_retry_after(text, now):
    """Whole seconds, at least 1: they may be sent as a date. None for other text."""
    try:
        if re.fullmatch(r"[0-9]{1,18}", text):
            seconds = int(text)
        else:
            date = email.utils.parsedate_to_datetime(text)
            seconds = math.ceil((date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(seconds, 1), 10**9)


def _parse(body, environment):
    """All variables, or none: an answer that is not as described is refused whole."""
    values = {}
    try:
        answer = json.loads(body)
        if answer["environment"] != environment:
            raise ValueError
        for one in answer["variables"]:
            name, value = one["key"], one["value"]
            if not isinstance(name, str) or not isinstance(value, str) or name in values:
                raise ValueError
            values[name] = value
        return values
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise KeyholeError("invalid_answer", "the answer is not one of Keyhole")


def _parse_url(text):
    try:
        url = urllib.parse.urlsplit(text)
        port = url.port
    except ValueError:
        url = port = None
    if url is None or url.scheme not in ("http", "https") or not url.hostname or re.search(r"[^!-~]", text):
        raise KeyholeError("invalid_options", "KEYHOLE_URL must be an address such as https://keyhole.example.com")
    if "@" in url.netloc or url.query or url.fragment or url.path.rstrip("/") not in ("", "/api/v1"):
        raise KeyholeError("invalid_options", "KEYHOLE_URL must be the server's origin or its API root")
    if url.scheme == "http" and not _is_loopback(url.hostname):
        raise KeyholeError("invalid_options", "plain http to another machine would show the key: use https")
    return url.scheme, url.hostname, port, "/api/v1"


def _is_loopback(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_key():
    if file := os.environ.get("KEYHOLE_API_KEY_FILE"):
        if not os.environ.get("KEYHOLE_API_KEY"):
            with open(file, encoding="ascii", errors="replace") as opened:
                return opened.read(4096).strip()
    return os.environ.get("KEYHOLE_API_KEY", "")


if __name__ == "__main__":
    print("\n".join(variables(os.environ["KEYHOLE_PROJECT"], os.environ["KEYHOLE_ENVIRONMENT"])))
