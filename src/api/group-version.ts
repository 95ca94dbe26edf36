/** The API group that is used for all kinds. */
export const GROUP = 'sluice.dev';

/** Version served and stored by the API server. */
export const VERSION = 'v1alpha1';

/** The `apiVersion` that is used for all objects in this API. */
export const API_VERSION = `${GROUP}/${VERSION}` as const;
