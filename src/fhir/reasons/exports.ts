const START_AGAIN = 'Start the export again.'
const CORRECT =
  'Correct or leave out the parameter. With “Prefer: handling=lenient” the export starts without it, and says so in “error” of its manifest.'
const WAIT = 'Wait as long as Retry-After says.'

/** Bulk exports that are refused or fail. */
export const EXPORTS = {
  'export-needs-service': {
    status: 403,
    code: 'forbidden',
    sentence:
      'Cannot export: a bulk export needs the token of a backend service, whose scopes are all system/ scopes',
    hint: 'Tokens with patient/ or user/ scopes can search instead',
    remedy:
      'Request the token with grant_type=client_credentials as a client that is registered for system/ scopes, such as system/*.rs.',
    challenge: 'Bearer error="insufficient_scope", scope="system/*.rs"',
  },
  'export-type-not-covered': {
    status: 403,
    code: 'forbidden',
    sentence: 'Cannot export {type}: no scope of the token permits to read and search it',
    remedy: 'Request a token with a system/ scope for the type, or leave the type out of _type.',
  },
  'export-of-nothing': {
    status: 403,
    code: 'forbidden',
    sentence: 'Cannot export: no scope of the token permits to read and search a type that this export has',
    remedy: 'Request a token with a system/ scope for the types to export.',
  },
  'export-parameter-unknown': {
    status: 400,
    code: 'not-supported',
    sentence: 'Cannot export with the parameter {parameter}: it is not supported here',
    remedy: CORRECT,
  },
  'export-parameter-malformed': {
    status: 400,
    code: 'invalid',
    sentence: 'Cannot read {parameter}: expected {expected}',
    remedy: CORRECT,
  },
  'export-filter-unsupported': {
    status: 400,
    code: 'not-supported',
    sentence: 'Cannot read _typeFilter: {filter} cannot be evaluated in an export',
    hint: 'It takes search parameters of one exported type, and neither chains nor _has nor parameters of the result, such as _sort',
    remedy: CORRECT,
  },
  'export-type-unsupported': {
    status: 400,
    code: 'not-supported',
    sentence: 'Cannot export {type}: this export does not have the type',
    hint: 'An export of patients has the types of the Patient compartment and those that they share. A Binary is the attachment of its DocumentReference; AuditEvents are searched',
    remedy: CORRECT,
  },
  'export-type-unorganized': {
    status: 400,
    code: 'not-supported',
    sentence: 'Cannot export {type} with organizeOutputBy: its resources are not those of one patient',
    hint: 'An export that is organized by patient has the types of the Patient compartment, without Group and Provenance',
    remedy: 'Export the type with a request of its own, without organizeOutputBy.',
  },
  'export-patient-unknown': {
    status: 400,
    code: 'not-found',
    sentence: 'Cannot export {patient}: it is not a patient of this export',
    remedy: CORRECT,
  },
  'export-group-unknown': {
    status: 404,
    code: 'not-found',
    sentence: 'Cannot find Group/{id}',
    remedy: 'Search for the Group, with a scope that permits to read it.',
  },
  'export-unknown': {
    status: 404,
    code: 'not-found',
    sentence: 'Cannot find this export: it has ended or expired, or another client has started it',
    remedy: START_AGAIN,
  },
  'export-polled-early': {
    status: 429,
    code: 'throttled',
    sentence: 'Cannot show the status yet: the client asks sooner than Retry-After said',
    remedy: WAIT,
  },
  'export-jobs-too-many': {
    status: 429,
    code: 'throttled',
    sentence: 'Cannot export: the client has {most} exports already',
    remedy: 'End exports that are no longer needed, with a DELETE of their status URLs.',
  },
  'export-downloads-too-many': {
    status: 429,
    code: 'throttled',
    sentence: 'Cannot send the file: the client downloads {most} files already',
    retryAfter: '60',
    remedy: WAIT,
  },
} as const
