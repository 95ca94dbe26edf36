import { describe, expect, test } from 'vitest';
import { createAnswerReader, type Progress } from './answer-reader.ts';

/** Reads a response that arrives in `parts`. */
function read(...parts: (string | Buffer)[]) {
  const reader = createAnswerReader();
  const got = { status: 0, retryAfter: undefined as string | undefined, body: '', heads: 0 };
  reader.begin({
    onHead(status, retryAfter) {
      got.heads++;
      got.status = status;
      got.retryAfter = retryAfter;
    },
    onBody(part) {
      got.body += part.toString('latin1');
    },
  });
  let progress: Progress = 'more';
  for (const part of parts) {
    progress = reader.read(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
    if (progress !== 'more') break;
  }
  return { ...got, progress, idleMs: reader.idleMs(), isWholeWhenClosed: reader.finish() };
}

const ANSWER = 'HTTP/1.1 200 OK\r\nretry-after: 7\r\ncontent-length: 5\r\n\r\nhello';
const CHUNKED =
  'HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 500 X\r\nTransfer-Encoding: gzip, chunked\r\n\r\n' +
  '3;a="b;c"\r\nhel\r\n2\r\nlo\r\n0\r\nx-trailer: y\r\n\r\n';

describe('a response in several parts', () => {
  test.each([
    ['with a length', ANSWER, 200],
    ['in chunks', CHUNKED, 500],
  ])('%s is read in the same way for every split', (_name, text, status) => {
    for (let at = 0; at <= text.length; at++) {
      const result = read(text.slice(0, at), text.slice(at));
      expect(result, `cut at ${at}`).toMatchObject({ status, body: 'hello', heads: 1, progress: 'end' });
    }
    expect(read(...text)).toMatchObject({ status, body: 'hello', heads: 1, progress: 'end' });
  });

  test('ends when the connection is closed if it has no length', () => {
    const result = read('HTTP/1.1 200 OK\r\n\r\nhel', 'lo');
    expect(result).toMatchObject({ progress: 'more', body: 'hello', isWholeWhenClosed: true, idleMs: 0 });
    expect(read(ANSWER.slice(0, -1))).toMatchObject({ progress: 'more', isWholeWhenClosed: false, idleMs: 0 });
  });

  test('is refused before its end if its first byte is wrong', () => {
    expect(read('HTTP/2.0 200 OK')).toMatchObject({ progress: 'invalid_response' });
    expect(read('HT', 'TQ')).toMatchObject({ progress: 'invalid_response' });
    expect(read('HT', 'TP')).toMatchObject({ progress: 'more' });
  });
});

describe('an ambiguous response', () => {
  test.each([
    ['two equal lengths', 'content-length: 5\r\ncontent-length: 5'],
    ['a list of lengths', 'content-length: 5, 5'],
    ['a length and chunks', 'content-length: 5\r\ntransfer-encoding: chunked'],
    ['chunks and a length', 'transfer-encoding: chunked\r\ncontent-length: 5'],
    ['a signed length', 'content-length: +5'],
    ['a space before the colon', 'content-length : 5'],
    ['a folded header', 'x: y\r\n content-length: 5'],
    ['a lone LF', 'x: y\ncontent-length: 5'],
    ['a lone CR', 'x: y\rcontent-length: 5'],
  ])('%s is refused', (_name, fields) => {
    expect(read(`HTTP/1.1 200 OK\r\n${fields}\r\n\r\nhello`)).toMatchObject({ progress: 'invalid_response', heads: 0 });
  });
});

describe('limits', () => {
  const filler = (bytes: number) => `x: ${'y'.repeat(bytes - 5)}\r\n`;
  const START = 'HTTP/1.1 200 OK\r\n';
  const END = 'content-length: 0\r\n\r\n';

  test('headers of exactly 16 KiB are read, one byte more is too large', () => {
    const room = 16_384 - START.length - END.length;
    expect(read(START + filler(room) + END)).toMatchObject({ progress: 'end' });
    expect(read(START + filler(room + 1) + END)).toMatchObject({ progress: 'headers_too_large', heads: 0 });
  });

  test('a response of more than 128 KiB is not read to its end', () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\n\r\n';
    const many = (bytes: number) => Array.from({ length: Math.ceil(bytes / hints.length) }, () => hints);
    expect(read(...many(128 * 1024 - 100), ANSWER)).toMatchObject({ progress: 'end', status: 200 });
    expect(read(...many(128 * 1024 + 100), ANSWER)).toMatchObject({ progress: 'headers_too_large', status: 0 });
  });

  test('a response is limited to 8,192 parts', () => {
    const hints = (count: number) => [...'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(count)];
    const [most, more] = [Math.floor((8_192 - ANSWER.length) / 28), Math.ceil(8_193 / 28)];
    expect(read(...hints(most), ...ANSWER)).toMatchObject({ progress: 'end', status: 200 });
    expect(read(...hints(more), ANSWER)).toMatchObject({ progress: 'headers_too_large', status: 0 });
  });

  test.each([
    ['a header', 'HTTP/1.1 200 OK\r\n'],
    ['a trailer', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n'],
  ])('%s with many blanks before a wrong byte does not take longer than others', (_name, before) => {
    const startedMs = performance.now();
    for (const blank of [' ', '\t', ' \t', ' x']) {
      const line = `x:${blank.repeat(16_000 / blank.length)}\0\r\n\r\n`;
      expect(read(before + line)).toMatchObject({ progress: 'invalid_response' });
    }
    expect(performance.now() - startedMs).toBeLessThan(500);
  });

  test('a chunk size of more than 48 bits is refused', () => {
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    expect(read(`${head}ffffffffffff\r\n`)).toMatchObject({ progress: 'more' });
    expect(read(`${head}1000000000000\r\n`)).toMatchObject({ progress: 'invalid_response', status: 200 });
  });
});

describe('idle time of the connection', () => {
  const idleMs = (fields: string, version = '1.1') =>
    read(`HTTP/${version} 200 OK\r\n${fields}content-length: 0\r\n\r\n`).idleMs;

  test.each([
    ['no header', '', undefined],
    ['closes', 'connection: x, Close\r\n', 0],
    ['closes, in the second of two', 'connection: x\r\nconnection: close\r\n', 0],
    ['9 s', 'keep-alive: timeout=9, max=3\r\n', 7_000],
    ['2 s', 'keep-alive: timeout=2\r\n', 0],
    ['an hour', 'keep-alive: timeout=3600\r\n', 60_000],
    ['no time', 'keep-alive: max=3\r\n', undefined],
  ])('%s', (_name, fields, expected) => {
    expect(idleMs(fields)).toBe(expected);
  });

  test('HTTP/1.0 connections are only kept with Connection: keep-alive', () => {
    expect(idleMs('', '1.0')).toBe(0);
    expect(idleMs('connection: keep-alive\r\n', '1.0')).toBeUndefined();
  });

  test('connections with data after the response are not reused', () => {
    expect(read(`${ANSWER}x`)).toMatchObject({ progress: 'end', body: 'hello', idleMs: 0 });
    expect(read(ANSWER)).toMatchObject({ progress: 'end', idleMs: undefined });
  });
});
