import { EVENT_PROBLEMS } from './event-problems.ts';
import { REQUEST_PROBLEMS } from './request-problems.ts';
import { RESOURCE_PROBLEMS } from './resource-problems.ts';

/**
 * Contains all problems that a response can contain by their stable codes. It is the only source of statuses and
 * titles, so routes refer to codes. You can add codes, but you must not change the meaning of a released code.
 */
export const PROBLEMS = { ...REQUEST_PROBLEMS, ...EVENT_PROBLEMS, ...RESOURCE_PROBLEMS };

export type ProblemCode = keyof typeof PROBLEMS;
