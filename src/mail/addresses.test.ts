import { describe, expect, test } from 'vitest';
import { parseMailbox } from './address.ts';
import { defaultSender, isLoopback, parseSmtpUrl } from './smtp-url.ts';

describe('a mailbox', () => {
  test.each([
    ['sluice@mail.example', { name: '', address: 'sluice@mail.example' }],
    ['Acme Events <no-reply@acme.example>', { name: 'Acme Events', address: 'no-reply@acme.example' }],
    ['"Acme, Inc." <no-reply@acme.example>', { name: 'Acme, Inc.', address: 'no-reply@acme.example' }],
    ['Zoë <z@acme.example>', { name: 'Zoë', address: 'z@acme.example' }],
    ['<z@acme.example>', { name: '', address: 'z@acme.example' }],
  ])('%j', (text, mailbox) => {
    expect(parseMailbox(text)).toEqual(mailbox);
  });

  test.each([
    '',
    'sluice',
    'a@b.example, c@d.example',
    'a@b.example\r\nBcc: c@d.example',
    'Acme\r\nBcc: c@d.example <a@b.example>',
    'Acme\u0085 <a@b.example>',
    'Acme <a@b.example> <c@d.example>',
    'Acme <a@b.example',
    'Acme <not an address>',
  ])('%j is not valid', text => {
    expect(parseMailbox(text)).toBeUndefined();
  });
});

test.each([
  ['localhost', true],
  ['LocalHost', true],
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
  ['::2', false],
  ['mail.example', false],
  ['localhost.example', false],
])('%s is on this machine: %s', (host, is) => {
  expect(isLoopback({ host })).toBe(is);
});

describe('the URL of a mail server', () => {
  test.each([
    ['smtp://mail.example', { host: 'mail.example', port: 587, secure: false }],
    ['smtps://mail.example/', { host: 'mail.example', port: 465, secure: true }],
    ['smtp://127.0.0.1:2525', { host: '127.0.0.1', port: 2525, secure: false }],
    ['smtp://[::1]:25', { host: '::1', port: 25, secure: false }],
    [
      'smtps://relay%40acme.example:p%40ss%3A%2F@mail.example:4650',
      {
        host: 'mail.example',
        port: 4650,
        secure: true,
        credentials: { user: 'relay@acme.example', password: 'p@ss:/' },
      },
    ],
  ])('%s', (text, parsed) => {
    expect(parseSmtpUrl(text)).toEqual(parsed);
  });

  test.each([
    'mail.example:25',
    'http://mail.example',
    'smtp://',
    'smtp:mail.example',
    'smtp://mail.example/path',
    'smtp://mail.example?pool=true',
    'smtp://mail.example#x',
    'smtp://user:secret@mail.example:99999',
    'smtp://user:secret%zz@mail.example',
  ])('%s is not valid, and is not repeated', text => {
    expect(() => parseSmtpUrl(text)).toThrow(TypeError);
    expect(() => parseSmtpUrl(text)).not.toThrow(/secret/);
  });

  test.each([
    ['smtp://mail.example', 'sluice@mail.example'],
    ['smtp://10.0.0.1', 'sluice@localhost'],
    ['smtp://[::1]', 'sluice@localhost'],
    ['smtp://mail_relay', 'sluice@localhost'],
  ])('%s: the sender of emails', (text, sender) => {
    expect(defaultSender(parseSmtpUrl(text))).toEqual(parseMailbox(sender));
  });
});
