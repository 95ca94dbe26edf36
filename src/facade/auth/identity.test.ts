import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { declareIdentity, identityOf, readIdentity, setIdentity } from './identity.ts';

const claims = { iss: 'https://login.example.com', sub: 'ada' };

test.each<[string, Record<string, unknown>, object]>([
  ['nothing more', {}, { groups: [], client: undefined }],
  ['groups', { groups: ['a', 'b'] }, { groups: ['a', 'b'] }],
  ['groups that are one text', { groups: 'a' }, { groups: [] }],
  ['groups that are not all texts', { groups: ['a', 1] }, { groups: [] }],
  ['groups in an object', { groups: { 0: 'a', length: 1 } }, { groups: [] }],
  ['a verified email', { email: 'Ada@example.com', email_verified: true }, { email: 'Ada@example.com' }],
  ['an email that is not verified', { email: 'ada@example.com' }, { email: undefined }],
  ['an email verified as text', { email: 'ada@example.com', email_verified: 'true' }, { email: undefined }],
  ['several emails', { email: ['ada@example.com'], email_verified: true }, { email: undefined }],
  ['no client for a person who uses a client', { client_id: 'p', azp: 'p' }, { client: undefined }],
  ['the client that is the subject', { client_id: 'ada' }, { client: 'ada' }],
  ['the scopes', { scope: 'a b' }, { scopes: new Set(['a', 'b']) }],
])('reads %s', (_, more, expected) => {
  expect(readIdentity({ ...claims, ...more })).toMatchObject({ issuer: claims.iss, subject: 'ada', ...expected });
});

test.each([{}, { iss: claims.iss }, { sub: 'ada' }, { ...claims, sub: '' }, { ...claims, sub: 1 }])(
  '%j does not identify a caller',
  wrong => {
    expect(() => readIdentity(wrong)).toThrow(TypeError);
  },
);

test('belongs to one request, and throws without a request', async () => {
  const app = Fastify({ logger: false });
  declareIdentity(app);
  app.get('/:who', async request => {
    const { who } = request.params as { who: string };
    if (who !== 'nobody') setIdentity(request, readIdentity({ ...claims, sub: who }));
    return identityOf(request).subject;
  });
  expect((await app.inject('/ada')).body).toBe('ada');
  expect((await app.inject('/nobody')).statusCode).toBe(500);
  const bare = Fastify({ logger: false });
  bare.get('/', async request => identityOf(request).subject);
  expect((await bare.inject('/')).statusCode).toBe(500);
});
