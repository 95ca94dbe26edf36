/** The description of a code with its HTTP status, its title and the required change. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  readonly remedy: string;
}
