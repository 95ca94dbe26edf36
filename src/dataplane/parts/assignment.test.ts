import { expect, test } from 'vitest';
import { dutyOf } from './assignment.ts';

const MEMBERS = ['a', 'b', 'c', 'd'];
const PARTS = Array.from({ length: 400 }, (_, i) => `ten_x:queue${i}:0`);

function dutiesOf(members: readonly string[], part: string) {
  return Object.fromEntries(members.map(member => [member, dutyOf(member, members, part)]));
}

test('each part has one home and one other dispatcher', () => {
  for (const part of PARTS) {
    expect(Object.values(dutiesOf(MEMBERS, part)).toSorted()).toEqual(['home', 'none', 'none', 'work']);
  }
});

test('parts are distributed over the dispatchers', () => {
  for (const member of MEMBERS) {
    const homes = PARTS.filter(part => dutyOf(member, MEMBERS, part) === 'home').length;
    expect(homes).toBeGreaterThan(60);
    expect(homes).toBeLessThan(140);
  }
});

test('makes the second dispatcher the home if the first one leaves, without moving other parts', () => {
  for (const part of PARTS) {
    const before = dutiesOf(MEMBERS, part);
    const gone = MEMBERS.find(member => before[member] === 'home');
    const left = MEMBERS.filter(member => member !== gone);
    const after = dutiesOf(left, part);
    for (const member of left) {
      if (before[member] === 'work') expect(after[member]).toBe('home');
    }
  }
});

test('a single dispatcher is responsible for everything', () => {
  for (const part of PARTS) expect(dutyOf('a', ['a'], part)).toBe('home');
});
