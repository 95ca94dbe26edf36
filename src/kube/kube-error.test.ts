import { describe, expect, it } from 'vitest';
import { errorFromStatus, isExpired, isMissing } from './kube-error.ts';

describe('KubeError', () => {
  it('lists each manager of a conflict once', () => {
    const cause = (message: string) => ({ reason: 'FieldManagerConflict', field: '.spec.x', message });
    const error = errorFromStatus('PATCH /x', 409, {
      kind: 'Status',
      reason: 'Conflict',
      message: 'Apply failed with 3 conflicts',
      details: {
        causes: [
          cause('conflict with "kubectl-client-side-apply" using sluice.dev/v1alpha1'),
          cause('conflict with "argocd-controller" with subresource "status" using sluice.dev/v1alpha1'),
          cause('conflict with "argocd-controller" using sluice.dev/v1alpha1'),
        ],
      },
    });
    expect(error.conflictManagers).toEqual(['kubectl-client-side-apply', 'argocd-controller']);
    expect(error.message).toBe('PATCH /x: 409 Conflict: Apply failed with 3 conflicts');
  });

  it('hides refused values from loggers', () => {
    const error = errorFromStatus('PATCH /x', 422, {
      kind: 'Status',
      reason: 'Invalid',
      message: 'spec.invitedEmail: Invalid value: "ada@example"',
      details: { causes: [{ reason: 'FieldValueInvalid', field: 'spec.invitedEmail', message: 'ada@example' }] },
    });
    expect(error.message).toBe('PATCH /x: 422 Invalid');
    expect(JSON.stringify({ ...error, message: error.message })).not.toContain('ada@example');
    expect(error.detail).toContain('ada@example');
    expect(error.causes[0]?.field).toBe('spec.invitedEmail');
  });

  it('prefers the delay in the header', () => {
    const body = { kind: 'Status', reason: 'TooManyRequests', details: { retryAfterSeconds: 9 } };
    expect(errorFromStatus('GET /x', 429, body, '3').retryAfterSeconds).toBe(3);
    expect(errorFromStatus('GET /x', 429, body).retryAfterSeconds).toBe(9);
  });

  it('omits the page of a proxy', () => {
    expect(errorFromStatus('GET /x', 502, '<html>').message).toBe('GET /x: 502 HTTP502');
  });

  it('detects an expired resourceVersion by status and by reason', () => {
    expect(isExpired(errorFromStatus('GET /x', 410, undefined))).toBe(true);
    expect(isExpired(errorFromStatus('GET /x', 500, { kind: 'Status', reason: 'Expired' }))).toBe(true);
    expect(isExpired(new Error('410'))).toBe(false);
  });

  it('does not take the 404 of anything else for a missing object', () => {
    const status = (code: number, body: unknown) => errorFromStatus('GET /x', code, body);
    expect(isMissing(status(404, { kind: 'Status', reason: 'NotFound' }))).toBe(true);
    expect(isMissing(status(404, undefined))).toBe(false);
    expect(isMissing(status(409, { kind: 'Status', reason: 'NotFound' }))).toBe(false);
    expect(isMissing(new Error('NotFound'))).toBe(false);
  });
});
