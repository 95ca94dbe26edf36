import { describe, expect, test } from 'vitest';
import { parseRedisUrl, withoutPasswords } from './redis-url.ts';

const NONE = { tls: false, username: undefined, password: undefined, sentinel: undefined };

describe('the URL of Redis', () => {
  test.each([
    ['redis://a', { ...NONE, nodes: [{ host: 'a', port: 6379 }] }],
    ['redis://[::1]:7000/', { ...NONE, nodes: [{ host: '::1', port: 7000 }] }],
    [
      'rediss://u:p%40ss@a:1, rediss://b:2',
      {
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
        tls: true,
        username: 'u',
        password: 'p@ss',
        sentinel: undefined,
      },
    ],
    ['redis+sentinel://a/main', { ...NONE, nodes: [{ host: 'a', port: 26379 }], sentinel: { master: 'main', db: 0 } }],
    [
      'rediss+sentinel://u:p%2Cw@a:1,[::1],c:3/my%20master/7',
      {
        nodes: [
          { host: 'a', port: 1 },
          { host: '::1', port: 26379 },
          { host: 'c', port: 3 },
        ],
        tls: true,
        username: 'u',
        password: 'p,w',
        sentinel: { master: 'my master', db: 7 },
      },
    ],
  ])('%s', (text, parsed) => {
    expect(parseRedisUrl(text)).toEqual(parsed);
  });

  test.each([
    ['http://a', 'must be redis://'],
    ['redis://', 'must be redis://'],
    ['redis://a:70000', 'must be redis://'],
    ['redis://a/2', 'must be redis://'],
    ['redis://a,http://b', 'must be redis://'],
    ['redis://a,rediss://b', 'either redis:// or rediss://'],
    ['redis://u:%@a', 'percent-encode'],
    ['redis+sentinel://a:1,b:2', 'does not contain a master name. Add the name after the Sentinels'],
    ['redis+sentinel://a:1,b:2/', 'does not contain a master name'],
    ['redis+sentinel://a:1,/main', 'must be redis://'],
    ['redis+sentinel://a:1/main/x', 'must be redis://'],
    ['redis+sentinel://u:p@w@a/main', 'must be redis://'],
  ])('refuses %s', (text, message) => {
    expect(() => parseRedisUrl(text)).toThrow(message);
  });

  test('is printed without its password', () => {
    expect(withoutPasswords('redis://:secret@a:1, redis://b')).toBe('redis://a:1,redis://b:6379');
    expect(withoutPasswords('rediss://user:secret@[::1]')).toBe('rediss://user@[::1]:6379');
    expect(withoutPasswords('redis+sentinel://user:secret@a:1,b/main/2')).toBe(
      'redis+sentinel://user@a:1,b:26379/main/2',
    );
  });
});
