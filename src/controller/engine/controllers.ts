import type { Controller } from './keyed-controller.ts';

/**
 * Contains the controllers of this process by name, which allows components to enqueue work for another controller
 * without a reference to this controller. Keys are dropped if the controller has not been added yet. Dropping them is
 * safe because every controller enqueues all of its keys when starting.
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
    enqueue: (name: string, key: string, order?: 'change' | 'background'): void =>
      byName.get(name)?.enqueue(key, order),
    enqueueAfter: (name: string, key: string, delayMs: number): void => byName.get(name)?.enqueueAfter(key, delayMs),
    isPending: (name: string, key: string): boolean => byName.get(name)?.isPending(key) === true,
    all: (): Controller[] => [...byName.values()],
  };
}

export type Controllers = ReturnType<typeof createControllers>;
