/** The API group of all kinds. */
export const GROUP = 'sluice.dev';

/** Version served and stored by the API server. */
export const VERSION = 'v1alpha1';

/** The `apiVersion` of all objects in this API. */
export const API_VERSION = `${GROUP}/${VERSION}` as const;
