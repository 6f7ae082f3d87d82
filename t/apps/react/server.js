// SPDX-License-Identifier: MIT
// A page that React streams: the list behind <Suspense> is ready only when POST /go says so, which a client does when
// it has seen what comes before. Each page has a key of its own, so that several can be under way.
'use strict';
const http = require('http');
const { createElement: e, Suspense, use } = require('react');
const { renderToPipeableStream } = require('react-dom/server');
const { page, listen } = require('../common');

const waiting = new Map();
const wait = (key) => {
  if (!waiting.has(key)) {
    let go;
    const promise = new Promise((resolve) => { go = resolve; });
    waiting.set(key, { promise, go });
  }
  return waiting.get(key);
};

function List({ ready }) {
  return e('ul', { id: 'list' }, use(ready).map((n) => e('li', { key: n }, 'entry ', n)));
}
const App = ({ ready }) => e('html', { lang: 'en' },
  e('head', null, e('title', null, 'react')),
  e('body', null,
    e('h1', null, 'first'),
    e(Suspense, { fallback: e('p', { id: 'wait' }, 'wait …') }, e(List, { ready }))));

const SEEN = `const wait = setInterval(() => {
  if (document.readyState !== 'complete' || document.querySelector('#wait'))
    return;
  clearInterval(wait);
  fetch('/seen', { method: 'POST', body: JSON.stringify({
    h1: document.querySelector('h1').textContent, entries: document.querySelectorAll('#list li').length }) });
}, 20);
fetch('/go?' + location.search.slice(1), { method: 'POST' });`;

listen(http.createServer(page(__dirname, (req, res) => {
  const [path, key] = req.url.split('?');
  if (path === '/go') {
    wait(key).go(Array.from({ length: 200 }, (_, i) => i));
    req.resume();
    res.end();
    return;
  }
  const { pipe } = renderToPipeableStream(e(App, { ready: wait(key).promise }), {
    bootstrapScriptContent: path === '/asks' ? SEEN : undefined,
    onShellReady() {
      res.setHeader('Content-Type', 'text/html; charset=utf-8');
      pipe(res);
    },
  });
})));
