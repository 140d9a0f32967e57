"""Drives a headless Chromium over a pipe, with the DevTools protocol and only Python's library."""
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import urllib.parse

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    def __init__(self, program, width=1440, height=900):
        to_read, self.out = os.pipe()
        self.inp, to_write = os.pipe()
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

        def place():  # the browser reads commands from 3 and writes answers to 4
            low, high = os.dup(to_read), os.dup(to_write)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
             "--allow-file-access-from-files=false", f"--window-size={width},{height}", f"--user-data-dir={self.profile.name}", "about:blank"],
            close_fds=False, preexec_fn=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.numbers, self.rest, self.events, self.session = itertools.count(1), b"", [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Performance"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self):
        os.close(self.out)
        os.close(self.inp)
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.inp, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        number = next(self.numbers)
        request = {"id": number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def ask(self, script):
        """The value of an expression, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def inside_frame(self, script):
        """Like ask(), in the first frame of the page."""
        tree = self.call("Page.getFrameTree")["frameTree"]
        frame = tree["childFrames"][0]["frame"]["id"]
        contexts = [event["params"]["context"] for event in self.events if event["method"] == "Runtime.executionContextCreated"]
        context = next(one["id"] for one in reversed(contexts) if one.get("auxData", {}).get("frameId") == frame)
        answer = self.call("Runtime.evaluate", expression=script, contextId=context, awaitPromise=True, returnByValue=True)
        return answer["result"].get("value")

    def open(self, path, fragment=""):
        self.go("about:blank")
        self.go("file://" + urllib.parse.quote(os.path.abspath(path)) + fragment)
        self.until("document.documentElement.dataset.ready === 'yes' || !!document.querySelector('.notice')")

    def go(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())

    def until(self, condition):
        """Waits in the browser, frame by frame, until a condition holds."""
        return self.ask("new Promise((done, failed) => { const begin = performance.now(); const look = () => {"
                        f" if ({condition}) done(true); else if (performance.now() - begin > 60000) failed('never: ' + {json.dumps(condition)});"
                        " else setTimeout(look, 5); }; look(); })")

    def processor_s(self):
        """The processor time of the page's process, which other programs of this machine do not lengthen."""
        return next(one["value"] for one in self.call("Performance.getMetrics")["metrics"] if one["name"] == "ProcessTime")

    def key(self, key, **more):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def press(self, selector):
        box = self.ask(f"(() => {{ const box = ({selector}).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()")
        self.click(*box)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """Errors of scripts, refusals by the page's policy, and requests to anything but the page itself."""
        self.ask("1")
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"])
            elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
            elif event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("file://", "about:")):
                    found.append("asks for " + url)
        return found
