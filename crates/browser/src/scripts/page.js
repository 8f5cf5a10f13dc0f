// Looks at a page from a world of its own. An expression that gives an object of functions.
(() => {
  const VOID = new Set("area base br col embed hr img input link meta param source track wbr".split(" "));
  const RAW = new Set("style script xmp iframe noembed noframes plaintext noscript".split(" "));
  const UNSEEN = new Set("SCRIPT STYLE NOSCRIPT TEMPLATE HEAD TITLE".split(" "));
  const INLINE = new Set("A ABBR B BDI BDO BIG CITE CODE DEL DFN EM FONT I INS KBD LABEL MARK Q S SAMP SMALL SPAN STRONG SUB SUP TIME TT U VAR WBR BR IMG".split(" "));
  const ADDRESSES = new Set("href src action formaction data poster cite background".split(" "));

  // Nodes in the order in which they are seen: shadow roots in place of what their hosts have, and slots filled.
  const childrenOf = (node) => {
    if (node.shadowRoot) return node.shadowRoot.childNodes;
    if (node.localName === "slot" && node.getRootNode() instanceof ShadowRoot) {
      const assigned = node.assignedNodes({ flatten: true });
      return assigned.length ? assigned : node.childNodes;
    }
    if (node.localName === "template" && node.content) return node.content.childNodes;
    return node.childNodes;
  };

  const documentOf = (frame) => {
    try { return frame.contentDocument; } catch { return null; }
  };

  // All documents and shadow roots of the page.
  const roots = () => {
    const found = [document];
    for (let i = 0; i < found.length; i++) {
      for (const element of found[i].querySelectorAll("*")) {
        if (element.shadowRoot) found.push(element.shadowRoot);
        if (element.localName === "iframe" || element.localName === "frame") {
          const inner = documentOf(element);
          if (inner) found.push(inner);
        }
      }
    }
    return found;
  };

  const find = (selector) => {
    const first = document.querySelector(selector);
    if (first) return first;
    for (const root of roots()) {
      const found = root.querySelector(selector);
      if (found) return found;
    }
    return null;
  };

  // Changes of the tree.
  let changed = performance.now();
  const watched = new WeakSet();
  const observer = new MutationObserver((records) => {
    // Classes and styles change all the time where something moves.
    const counts = (r) => r.type !== "attributes" || (r.attributeName !== "class" && r.attributeName !== "style");
    if (records.some(counts)) changed = performance.now();
  });
  const watch = () => {
    for (const root of roots()) {
      if (watched.has(root)) continue;
      watched.add(root);
      observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
      changed = performance.now();
    }
  };
  watch();
  // Milliseconds since the last change, when all that the page has to do is done.
  const unchanged = async () => {
    await new Promise((resolve) => requestIdleCallback(resolve, { timeout: 300 }));
    watch();
    return performance.now() - changed;
  };

  // The tree as HTML.
  const escapeText = (text) => text.replace(/[&<>\u00a0]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "\u00a0": "&nbsp;" })[c]);
  const escapeValue = (text) => text.replace(/[&<>"\u00a0]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\u00a0": "&nbsp;" })[c]);
  const absolute = (value, base) => {
    try { return new URL(value, base).href; } catch { return value; }
  };
  const isHtml = (node) => node.namespaceURI === "http://www.w3.org/1999/xhtml";

  const openTag = (element, name, base) => {
    let tag = "<" + name;
    for (const { name: attribute, value } of element.attributes) {
      if (name === "iframe" && attribute === "srcdoc") continue;
      const given = base !== null && ADDRESSES.has(attribute) ? absolute(value, base) : value;
      tag += ` ${attribute}="${escapeValue(given)}"`;
    }
    return tag + ">";
  };

  // What is in frames, by their elements. Only the browser can look into frames of other origins.
  const inFrames = new WeakMap();
  const putFrame = (frame, url, html) => { inFrames.set(frame, { url, html }); };

  // Writes nodes, of which the last one comes first. Addresses become absolute if there is a base.
  const write = (stack, base, limit, rest) => {
    const out = [];
    let length = 0;
    let isWhole = true;
    let hasBody = rest === "";
    const put = (text) => { out.push(text); length += text.length; };
    while (stack.length) {
      const node = stack.pop();
      if (typeof node === "string") { put(node); continue; }
      if (length > limit) { isWhole = false; continue; }
      if (node.nodeType === Node.TEXT_NODE || node.nodeType === Node.CDATA_SECTION_NODE) {
        const parent = node.parentNode;
        put(parent && isHtml(parent) && RAW.has(parent.localName) ? node.data : escapeText(node.data));
        continue;
      }
      if (node.nodeType === Node.COMMENT_NODE) { put(`<!--${node.data}-->`); continue; }
      if (node.nodeType === Node.DOCUMENT_TYPE_NODE) {
        const ids = node.publicId ? ` PUBLIC "${node.publicId}"` : node.systemId ? " SYSTEM" : "";
        put(`<!DOCTYPE ${node.name}${ids}${node.systemId ? ` "${node.systemId}"` : ""}>`);
        continue;
      }
      const isFilled = node.localName === "slot" && node.getRootNode() instanceof ShadowRoot;
      if (node.nodeType === Node.ELEMENT_NODE && !isFilled) {
        // A body may hold frames; a set of them holds nothing else.
        const name = node.localName === "frameset" ? "body" : isHtml(node) ? node.localName : node.tagName;
        put(openTag(node, name, base));
        if (name === "iframe" || name === "frame") {
          const inner = inFrames.get(node);
          put(`</${name}>`);
          if (inner) put(`<div data-huntsman-frame="${escapeValue(inner.url)}">${inner.html}</div>`);
          continue;
        }
        if (isHtml(node) && VOID.has(name)) continue;
        const isBody = name === "body" && !hasBody;
        stack.push(`${isBody ? rest : ""}</${name}>`);
        hasBody ||= isBody;
        const first = node.firstChild;
        const dropsLine = isHtml(node) && (name === "pre" || name === "textarea" || name === "listing");
        if (dropsLine && first && first.nodeType === Node.TEXT_NODE && first.data.startsWith("\n")) put("\n");
      }
      const children = childrenOf(node);
      for (let i = children.length - 1; i >= 0; i--) stack.push(children[i]);
    }
    if (!hasBody) put(rest);
    return { html: out.join("").toWellFormed(), isWhole };
  };

  const html = (limit) => write([document], null, limit, seenBefore(limit));

  // What is in the body of a frame.
  const inner = (limit) => write(document.body ? [...childrenOf(document.body)].reverse() : [], document.baseURI, limit, "");

  // What was seen while the page was scrolled: own texts and links of blocks, by themselves.
  const seen = new Map();
  const links = new Set();
  let seenLength = 0;

  const own = (block) => {
    let text = "";
    const stack = [...block.childNodes].reverse();
    while (stack.length) {
      const node = stack.pop();
      if (typeof node === "string") { text += node; continue; }
      if (node.nodeType === Node.TEXT_NODE) text += escapeText(node.data);
      if (node.nodeType !== Node.ELEMENT_NODE || UNSEEN.has(node.tagName) || !INLINE.has(node.tagName)) continue;
      if (node.tagName === "BR") { text += " "; continue; }
      if (node.tagName === "A" && node.href) { text += `<a href="${escapeValue(node.href)}">`; stack.push("</a>"); }
      for (const child of [...node.childNodes].reverse()) stack.push(child);
    }
    return text.replace(/\s+/g, " ").trim();
  };

  const blocks = () => {
    const found = new Set();
    const add = (node) => {
      let block = node;
      while (block && block.nodeType === Node.ELEMENT_NODE && INLINE.has(block.tagName)) block = block.parentNode;
      if (block && block.nodeType === Node.ELEMENT_NODE && !UNSEEN.has(block.tagName)) found.add(block);
      else if (block && block.nodeType === Node.DOCUMENT_FRAGMENT_NODE) found.add(block);
    };
    for (const root of roots()) {
      const top = root.body || root;
      const walker = document.createTreeWalker(top, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) if (/\S/.test(walker.currentNode.data)) add(walker.currentNode.parentNode);
      for (const link of top.querySelectorAll("a[href]")) add(link);
    }
    return found;
  };

  const remember = (limit) => {
    for (const block of blocks()) {
      const text = own(block);
      if (!text || seen.has(text) || seenLength > limit) continue;
      seen.set(text, true);
      seenLength += text.length;
      for (const [, link] of text.matchAll(/<a href="([^"]*)"/g)) links.add(link);
    }
  };

  // What was seen and is no longer there.
  const seenBefore = (limit) => {
    if (!seen.size) return "";
    const now = new Set();
    for (const block of blocks()) now.add(own(block));
    let rest = "";
    for (const text of seen.keys()) if (!now.has(text) && rest.length < limit) rest += `<p>${text}</p>\n`;
    return rest && `<div data-huntsman-scrolled>\n${rest}</div>`;
  };

  const frame = () => new Promise((resolve) => {
    const late = setTimeout(resolve, 100);
    requestAnimationFrame(() => requestAnimationFrame(() => { clearTimeout(late); resolve(); }));
  });

  const scrollers = () => {
    const page = document.scrollingElement || document.documentElement;
    let inner = null;
    let area = 0;
    for (const element of document.querySelectorAll("*")) {
      if (element === page || element.scrollHeight <= element.clientHeight + 20 || element.clientHeight < 100) continue;
      const size = element.clientHeight * element.clientWidth;
      if (size > area && /auto|scroll/.test(getComputedStyle(element).overflowY)) { inner = element; area = size; }
    }
    return inner ? [page, inner] : [page];
  };

  // One round: view by view to the end that the page has now; what it adds meanwhile is for the next round.
  // How high it all is then, how many links were seen, and whether an element matched, which also ends the round.
  const scroll = async (limit, until) => {
    const VIEWS = 200;
    let heights = 0;
    for (const scroller of scrollers()) {
      const step = Math.max(100, scroller.clientHeight * 0.9);
      const rest = scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
      const views = Math.min(VIEWS, 1 + Math.ceil(rest / step));
      for (let view = 0; view < views; view++) {
        remember(limit);
        if (until && find(until)) return [heights, links.size, true];
        const before = scroller.scrollTop;
        scroller.scrollTo({ top: before + step, behavior: "instant" });
        await frame();
        if (scroller.scrollTop <= before) break;
      }
      remember(limit);
      heights += scroller.scrollHeight;
    }
    return [heights, links.size, !!until && !!find(until)];
  };

  // Actions.
  const element = (selector) => {
    const found = find(selector);
    if (!found) throw `no element matches ${selector}`;
    return found;
  };
  const tell = (target, ...names) => {
    for (const name of names) target.dispatchEvent(new Event(name, { bubbles: true, composed: true }));
  };

  const click = (selector) => {
    const target = element(selector);
    if (target.disabled) throw `${selector} is disabled`;
    target.scrollIntoView({ block: "center", behavior: "instant" });
    const box = target.getBoundingClientRect();
    const at = { bubbles: true, cancelable: true, composed: true, view: window, button: 0, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
    for (const name of ["pointerover", "pointerdown"]) target.dispatchEvent(new PointerEvent(name, { ...at, isPrimary: true, pointerType: "mouse" }));
    for (const name of ["mouseover", "mousedown"]) target.dispatchEvent(new MouseEvent(name, at));
    if (target.focus) target.focus({ preventScroll: true });
    target.dispatchEvent(new PointerEvent("pointerup", { ...at, isPrimary: true, pointerType: "mouse" }));
    target.dispatchEvent(new MouseEvent("mouseup", at));
    if (target.click) target.click(); else target.dispatchEvent(new MouseEvent("click", at));
  };

  const fill = (selector, text) => {
    const target = element(selector);
    if (target.disabled || target.readOnly) throw `${selector} cannot be filled`;
    target.focus();
    if (target.isContentEditable) target.textContent = text;
    else if ("value" in target) target.value = text;
    else throw `${selector} is no field`;
    target.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true, data: text, inputType: "insertText" }));
    tell(target, "change");
  };

  const select = (selector, value) => {
    const target = element(selector);
    if (!(target instanceof HTMLSelectElement)) throw `${selector} is no list`;
    target.focus();
    target.value = value;
    if (target.value !== value) throw `${selector} has no option ${value}`;
    tell(target, "input", "change");
  };

  return { find, unchanged, html, inner, putFrame, scroll, click, fill, select };
})()
