// Runs before the scripts of each document.
(() => {
  // Dialogs are answered with no, here and not by the browser, in which a loop of them cannot be ended.
  globalThis.alert = function alert() {};
  globalThis.confirm = function confirm() { return false; };
  globalThis.prompt = function prompt() { return null; };
  globalThis.print = function print() {};

  // Connections that go past HTTP and that no event tells of are counted. They fail, because there are no datagrams.
  const tell = globalThis.huntsmanDirect;
  const Original = globalThis.RTCPeerConnection;
  if (!Original || !tell) return;
  const Counted = new Proxy(Original, {
    construct(target, args, self) {
      tell("webrtc");
      return Reflect.construct(target, args, self);
    },
  });
  globalThis.RTCPeerConnection = Counted;
  if (globalThis.webkitRTCPeerConnection) globalThis.webkitRTCPeerConnection = Counted;
})();
