import type { Installation } from '../installation.ts';

/** An expression that is written differently by each rendering. */
export interface Format {
  /** The conversion of a value to text for string fields. */
  readonly as?: 'text' | 'joined' | 'pairs';
}

/**
 * A method for rendering the manifests: plain YAML with the defaults, or a Helm template, in which each value is an
 * expression. Paths refer to values.yaml, e.g. `controller.replicas`.
 */
export interface Target extends Installation {
  readonly image: string;
  /** The image of the evaluation Redis. */
  readonly redisImage: string;
  /** Returns the value of the `app.kubernetes.io/component` label for the pods of a role. */
  readonly componentOf: (role: string) => string;
  /** Returns the name of a Secret that may have been created by the user. */
  readonly secretOf: (subject: 'redis' | 'root-key' | 'smtp') => string;
  /** Returns a value. */
  readonly value: (path: string, format?: Format) => unknown;
  /** Returns a list or an object with all of its items or fields. */
  readonly tree: (path: string) => unknown;
  /** Returns one of two words: `yes` if the value is neither empty nor false. */
  readonly choose: (path: string, yes: string, no: string) => unknown;
  /** Returns fields that are only included if the value is neither empty nor false. */
  readonly when: (path: string, fields: object) => object;
  /** Returns fields that are only included unless an autoscaler changes the number of pods of a workload. */
  readonly unlessAutoscaled: (workload: string, fields: object) => object;
  /** Returns fields that are only included if the value is equal to this text. */
  readonly whenIs: (path: string, is: string, fields: object) => object;
  /** Returns items that are only included if the value is neither empty nor false. */
  readonly itemsWhen: (path: string, items: readonly unknown[]) => readonly unknown[];
  /** Returns one item for each item of a list. */
  readonly each: (path: string, item: (value: unknown) => unknown) => readonly unknown[];
  /** Returns one item for each port that a NetworkPolicy opens for these connections. */
  readonly eachPort: (
    kind: 'redis' | 'https' | 'smtp' | 'collector',
    item: (port: unknown) => unknown,
  ) => readonly unknown[];
  /** Returns the items of a list, which can be combined with other items. */
  readonly spread: (path: string) => readonly unknown[];
  /** Returns an object's fields, which can be combined with other fields. */
  readonly merge: (path: string) => object;
  /** Rules of a NetworkPolicy for public addresses and allowed networks, but not for refused networks. */
  readonly endpointRules: readonly unknown[];
  /** The number of seconds between SIGTERM and SIGKILL. */
  readonly graceSeconds: unknown;
  /** Annotations that make pods restart when their configuration changes. */
  readonly checksums: object;
  /** True if the Secret with the mail server may be missing. */
  readonly smtpOptional: unknown;
}
