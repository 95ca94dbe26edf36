import type { Controller } from './keyed-controller.ts';

/**
 * Holds the controllers in this process by name, so that a component can enqueue work for another controller without
 * needing a reference to it. Keys for a controller that hasn't been added yet are dropped, which is safe because a
 * controller enqueues every key when it starts.
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
