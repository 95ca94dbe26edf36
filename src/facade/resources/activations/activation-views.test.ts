import { describe, expect, test } from 'vitest';
import { activationId, publicId } from '../../../core/ids/ids.ts';
import type { Cached } from '../../caches/cached.ts';
import { ActivationEntry, activationEntry, judgeActivation, pairOf } from './activation-views.ts';

const lastTransitionTime = '2026-01-01T00:00:00Z';

function activation(
  name: string,
  state: { readonly revoked?: boolean; readonly effective?: string; readonly at?: number; readonly ready?: string },
): Cached<'Activation'> {
  const { effective, at = 1, ready } = state;
  const stated = { message: 'so', observedGeneration: at, lastTransitionTime };
  const conditions = [
    ...(ready === undefined ? [] : [{ type: 'Ready', status: 'Unknown' as const, reason: ready, ...stated }]),
    ...(effective === undefined
      ? []
      : [
          {
            type: 'Effective',
            status: effective === 'Routing' ? ('True' as const) : ('False' as const),
            reason: effective,
            ...stated,
          },
        ]),
  ];
  return {
    metadata: { namespace: 'shop', name, uid: name, resourceVersion: '1', generation: at },
    spec: { integration: 'ada', groupKey: 'a/b', ...(state.revoked === undefined ? {} : { revoked: state.revoked }) },
    status: { conditions },
  };
}

describe('an entry', () => {
  test('contains the integration, the group key, and whether it is effective', () => {
    const entry = activationEntry([activation('act-1', { effective: 'Routing' })]);
    expect(entry).toEqual({
      publicId: activationId('shop', 'ada', 'a/b'),
      groupKey: 'a/b',
      status: 'Active',
      integrationPublicId: publicId('Integration', 'shop', 'ada'),
      effective: true,
      reason: 'Routing',
      objects: ['act-1'],
    });
    expect(ActivationEntry.parse(entry)).toEqual(entry);
  });

  test('is Revoked if any of its objects is revoked, in any order', () => {
    const one = activation('b', { effective: 'RevokedElsewhere' });
    const other = activation('a', { revoked: true, effective: 'Revoked' });
    for (const pair of [
      [one, other],
      [other, one],
    ] as const) {
      expect(activationEntry(pair)).toMatchObject({
        status: 'Revoked',
        effective: false,
        reason: 'Revoked',
        objects: ['a', 'b'],
      });
    }
  });

  test.each([
    ['there is no status yet', {}, 'Progressing'],
    ['it waits for something', { ready: 'WaitingForIntegration' }, 'WaitingForIntegration'],
    ['the partner has not accepted', { ready: 'GateOpen', effective: 'IntegrationPending' }, 'IntegrationPending'],
  ])('is not effective while %s', (_what, state, reason) => {
    expect(activationEntry([activation('a', state)])).toMatchObject({ status: 'Active', effective: false, reason });
  });

  test('remains effective after it was revoked until the controller has closed the gate', () => {
    const entry = activationEntry([activation('a', { revoked: true, effective: 'Routing' })]);
    expect(entry).toMatchObject({ status: 'Revoked', effective: true });
  });

  test('belongs to its pair: an integration and a group key that may contain slashes', () => {
    expect(pairOf(activation('a', {}))).toBe('ada/a/b');
  });
});

describe('an applied activation', () => {
  test.each([
    ['Routing', 'open'],
    ['IntegrationPending', 'open'],
    ['RevokedElsewhere', 'revoked_elsewhere'],
    ['IntegrationClosed', 'integration_closed'],
  ])('has the reason %s: %s', (effective, judgement) => {
    expect(judgeActivation(activation('a', { effective, at: 3 }), 3)).toBe(judgement);
  });

  test('ignores conditions of an earlier generation', () => {
    expect(judgeActivation(activation('a', { effective: 'Routing', at: 2 }), 3)).toBe('unknown');
    expect(judgeActivation(activation('a', {}), 3)).toBe('unknown');
  });

  test('is not applied anymore if the object is revoked', () => {
    expect(judgeActivation(activation('a', { revoked: true, effective: 'Routing', at: 4 }), 3)).toBe('superseded');
  });
});
