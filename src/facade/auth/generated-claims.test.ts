import { expect, test } from 'vitest';
import { type Choices, createChoices } from '../../../test/support/random.ts';
import { clientOf } from './client-rules.ts';
import { readIdentity } from './identity.ts';
import { SCOPES } from './scopes.ts';

const SEED = Number(process.env['SEED'] || 20_261_125);
const TOKENS = 20_000;

const CLIENT = 'Portal';
/** Names that a person could choose, or that a provider could allow. */
const NAMES = [CLIENT, 'portal', `${CLIENT}@clients`, 'service-account-portal', `service-account-${CLIENT}`, 'ada', ''];
const CLIENT_NAMES = ['client_id', 'azp', 'appid', 'cid', 'clientId'];
/** Claims for which a person can choose the value, using a user name, a profile, or a scope request. */
const CHOSEN = ['preferred_username', 'name', 'email', 'nickname', 'scope', '__proto__', 'constructor'];
/** Claims that are only present if a person has signed in. */
const SIGNED_IN = ['auth_time', 'amr', 'sid', 'uid', 'nonce'];

/** Returns the claims of a person who uses a client and tries to impersonate it. */
function personOf(random: Choices): Record<string, unknown> {
  const claims: Record<string, unknown> = { iss: 'https://login.example', sub: random.pick(NAMES) || 'ada' };
  const set = (name: string, value: unknown) => Object.defineProperty(claims, name, { value, enumerable: true });
  for (const name of CLIENT_NAMES) if (random.below(2) === 0) claims[name] = CLIENT;
  for (const name of CHOSEN) if (random.below(3) === 0) set(name, random.pick(NAMES));
  claims[random.pick(SIGNED_IN)] = random.pick<unknown>([1, 'x', ['pwd'], 0, null, false, '']);
  return claims;
}

test(`none of ${TOKENS} tokens of people stands for a client (SEED=${SEED})`, () => {
  const failures: unknown[] = [];
  let named = 0;
  for (let i = 0; i < TOKENS; i++) {
    const claims = personOf(createChoices(SEED + i));
    if (CLIENT_NAMES.some(name => Object.hasOwn(claims, name))) named += 1;
    if (readIdentity(claims).client !== undefined) failures.push(claims);
  }
  expect(failures.slice(0, 5)).toEqual([]);
  // Nearly all of them name a client, and without the sign-in some would be taken for it.
  expect(named).toBeGreaterThan(TOKENS / 2);
  expect(clientOf({ sub: CLIENT, azp: CLIENT }, [])).toBe(CLIENT);
});

const WORDS = Object.keys(SCOPES);
const BLANKS = [' ', '  ', '\t', '\u00a0', '\u2003', ',', ';', '+', '%20', '\n'];

/** Returns the value of a scope claim, and the resulting scopes. */
function scopesGiven(random: Choices): { value: unknown; given: readonly string[] } {
  const words = Array.from({ length: random.below(4) }, () =>
    random.pick([...WORDS, 'waas:*', 'WAAS:WRITE', 'waas:write2', 'xwaas:write', 'waas', '*', '']),
  );
  const blank = random.pick(BLANKS);
  const only = words.filter(word => WORDS.includes(word));
  switch (random.below(5)) {
    case 0:
      // Words with other separators than spaces are a single unknown scope.
      return { value: words.join(blank), given: /^ +$/.test(blank) || words.length < 2 ? only : [] };
    case 1:
      return { value: words, given: only };
    case 2:
      return { value: [...words, random.pick<unknown>([1, null, {}, ['waas:write']])], given: [] };
    case 3:
      return { value: Object.fromEntries(words.map(word => [word, true])), given: [] };
    default:
      return { value: random.pick<unknown>([true, 1, null, [words], { scope: 'waas:write' }]), given: [] };
  }
}

test(`${TOKENS} tokens give the scopes that they name, and no others (SEED=${SEED})`, () => {
  const failures: unknown[] = [];
  for (let i = 0; i < TOKENS; i++) {
    const random = createChoices(SEED + i);
    const [one, other] = [scopesGiven(random), scopesGiven(random)];
    // The roles of a person are not scopes.
    const claims = { iss: 'i', sub: 's', scope: one.value, scp: other.value, roles: WORDS };
    const { scopes } = readIdentity(claims);
    const found = WORDS.filter(word => scopes.has(word as keyof typeof SCOPES));
    const wanted = WORDS.filter(word => one.given.includes(word) || other.given.includes(word));
    if (found.join() !== wanted.join()) failures.push({ claims, found, wanted });
  }
  expect(failures.slice(0, 5)).toEqual([]);
});
