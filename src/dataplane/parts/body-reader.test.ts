import { expect, test } from 'vitest';
import { createBodyShare } from './body-reader.ts';
import { createRoom } from './room.ts';

test('bodies that do not get any room in time stop waiting', async () => {
  const share = createRoom(900).join('a');
  let waiting = 0;
  const bodies = createBodyShare({
    ...share,
    wait(onRoom, count) {
      const stopWaiting = share.wait(onRoom, count);
      waiting++;
      return () => {
        waiting--;
        stopWaiting();
      };
    },
  });
  expect(await bodies.hold(300)).toBe(true);
  const held = Array.from({ length: 20 }, () => bodies.hold(300));
  expect(waiting).toBe(20);
  expect(await Promise.all(held)).not.toContain(true);
  expect(waiting).toBe(0);
});

test('a waiting body gets the room that another body has released', async () => {
  const bodies = createBodyShare(createRoom(900).join('a'));
  expect(await bodies.hold(300)).toBe(true);
  const held = bodies.hold(300);
  bodies.release(300);
  expect(await held).toBe(true);
});

test('a body that is released only wakes those that fit', async () => {
  const share = createRoom(900).join('a');
  let woken = 0;
  const bodies = createBodyShare({
    ...share,
    wait(onRoom, count) {
      const onWoken = () => {
        woken++;
        onRoom();
      };
      return share.wait(onWoken, count);
    },
  });
  expect(await bodies.hold(300)).toBe(true);
  const held = Array.from({ length: 20 }, () => bodies.hold(300));
  bodies.release(300);
  expect(woken).toBe(1);
  expect((await Promise.all(held)).filter(Boolean)).toHaveLength(1);
});
