/** The API group of all kinds. */
export const GROUP = 'sluice.dev';

/** The version that the API server serves and stores. */
export const VERSION = 'v1alpha1';

/** The `apiVersion` of all objects in this API. */
export const API_VERSION = `${GROUP}/${VERSION}` as const;
