import type { Controller } from './keyed-controller.ts';

/**
 * The controllers of a process, by name. Parts that notice work name the controller it is for, so no part needs a
 * reference to another one. A key for a controller that is not added yet is dropped: a start works on every key.
 */
export function createControllers() {
  const byName = new Map<string, Controller>();
  return {
    add(...controllers: readonly Controller[]): void {
      for (const controller of controllers) {
        if (byName.has(controller.name)) throw new Error(`two controllers are named ${controller.name}`);
        byName.set(controller.name, controller);
      }
    },
    enqueue: (name: string, key: string, order?: 'first' | 'background'): void => byName.get(name)?.enqueue(key, order),
    enqueueAfter: (name: string, key: string, delayMs: number): void => byName.get(name)?.enqueueAfter(key, delayMs),
    isPending: (name: string, key: string): boolean => byName.get(name)?.isPending(key) === true,
    all: (): Controller[] => [...byName.values()],
  };
}

export type Controllers = ReturnType<typeof createControllers>;
