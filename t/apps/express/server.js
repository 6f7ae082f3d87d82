// SPDX-License-Identifier: MIT
// Express with what a usual site has: forms, uploads to memory and disk, cookies, redirects, static files, errors.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const os = require('os');
const path = require('path');
const cookies = require('cookie-parser');
const express = require('express');
const multer = require('multer');
const { page } = require('../common');

const sha = (b) => crypto.createHash('sha256').update(b).digest('hex');
const app = express();
app.set('trust proxy', 'loopback');
app.use('/static', express.static(path.join(__dirname, 'public'), { maxAge: '1h' }));
app.use(cookies('secret'));

app.get('/whoami', (req, res) => res.json({
  ip: req.ip, protocol: req.protocol, hostname: req.hostname, secure: req.secure, url: req.originalUrl,
}));
app.get('/login', (req, res) => {
  res.cookie('user', 'a b;c=d', { signed: true, httpOnly: true });
  res.cookie('theme', 'dark', { expires: new Date('2037-01-02T03:04:05Z') });
  res.redirect('/me?from=login');
});
app.get('/me', (req, res) => res.json({ user: req.signedCookies.user, theme: req.cookies.theme, from: req.query.from }));
app.post('/moved', (req, res) => res.redirect(308, '/echo'));
app.post('/echo', express.json(), (req, res) => res.json(req.body));
app.post('/form', express.urlencoded({ extended: true }), (req, res) => res.json(req.body));

const answer = (req, res) => res.json({
  fields: { ...req.body },
  files: req.files.map((f) => ({ field: f.fieldname, name: f.originalname, type: f.mimetype, size: f.size,
                                 sha: sha(f.buffer || fs.readFileSync(f.path)) })),
});
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-app-'));
process.on('exit', () => fs.rmSync(dir, { recursive: true }));
process.on('SIGTERM', () => process.exit(0));
app.post('/memory', multer({ limits: { fileSize: 8 << 20 } }).any(), answer);
app.post('/disk', multer({ dest: dir }).any(), answer);

app.get('/boom', () => { throw new Error('boom'); });
app.get('/late', (req, res, next) => setTimeout(() => next(Object.assign(new Error('late'), { status: 418 })), 10));
app.get('/cut', (req, res) => {
  res.write('half');
  setTimeout(() => res.destroy(), 10);
});
app.use(page(__dirname, (req, res) => res.status(404).send('nothing here')));
app.use((err, req, res, next) => (res.headersSent ? next(err) : res.status(err.status || 500).json({ error: err.message })));
app.listen(Number(process.env.PORT), '127.0.0.1');
