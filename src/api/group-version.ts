/** API group of all kinds. */
export const GROUP = 'sluice.dev';

/** The one version that is served and stored. */
export const VERSION = 'v1alpha1';

/** `apiVersion` of every object of this API. */
export const API_VERSION = `${GROUP}/${VERSION}` as const;
