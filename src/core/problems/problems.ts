import { EVENT_PROBLEMS } from './event-problems.ts';
import { REQUEST_PROBLEMS } from './request-problems.ts';
import { RESOURCE_PROBLEMS } from './resource-problems.ts';

/**
 * All problems by their code, which never changes. Statuses and titles are only defined here, so routes should use
 * these codes. Codes can be added, but the meaning of a released code must never change.
 */
export const PROBLEMS = { ...REQUEST_PROBLEMS, ...EVENT_PROBLEMS, ...RESOURCE_PROBLEMS };

export type ProblemCode = keyof typeof PROBLEMS;
