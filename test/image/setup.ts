import type { TestProject } from 'vitest/node';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Build, buildTwice } from './builds.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Two builds of the image, or the reason why this machine cannot build it. */
    image: readonly [Build, Build] | string;
  }
}

/** The global setup of the project `image`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await temporaryFolder('image');
  try {
    const builds = await buildTwice(folder.path);
    if (typeof builds === 'string') console.warn(`SKIPPED: the image; ${builds}`);
    project.provide('image', builds);
  } catch (error) {
    await folder.remove();
    throw error;
  }
  return folder.remove;
}
