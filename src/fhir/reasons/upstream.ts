const TRY_AGAIN = 'Try again. If it lasts, tell the operator of the server.'
const MAY_BE_DONE =
  'The change may have been carried out. Read the resource before you send the request again.'
const TELL = 'Tell the operator of the server. Its log has the cause.'
const LOST = 'Read the resource. The audit trail has the version that was lost.'

/** Failures because of the upstream FHIR server, or because too many requests wait for it. */
export const UPSTREAM = {
  'upstream-unreachable': {
    status: 503,
    code: 'transient',
    sentence: 'The upstream FHIR server does not answer. Try again soon.',
    remedy: TRY_AGAIN,
    retryAfter: '2',
  },
  'upstream-unreachable-in-change': {
    status: 503,
    code: 'transient',
    sentence: `The upstream FHIR server does not answer. ${MAY_BE_DONE}`,
    remedy: MAY_BE_DONE,
    retryAfter: '2',
  },
  'upstream-late': {
    status: 504,
    code: 'transient',
    sentence: 'The upstream FHIR server did not answer in time.',
    remedy: TRY_AGAIN,
  },
  'upstream-late-in-change': {
    status: 504,
    code: 'transient',
    sentence: `The upstream FHIR server did not answer in time. ${MAY_BE_DONE}`,
    remedy: MAY_BE_DONE,
  },
  'upstream-broken': {
    status: 502,
    code: 'transient',
    sentence: 'The upstream FHIR server sent an invalid response.',
    remedy: TELL,
  },
  'upstream-broken-in-change': {
    status: 502,
    code: 'transient',
    sentence: `The upstream FHIR server sent an invalid response. ${MAY_BE_DONE}`,
    remedy: MAY_BE_DONE,
  },
  'upstream-declined': {
    status: 400,
    code: 'processing',
    sentence: 'The FHIR server refused this request.',
    cause: 'The upstream FHIR server refused the request. The response has its status and its issues.',
    remedy: 'Change the request as the issues of the response say.',
  },
  'grant-requests-too-many': {
    status: 429,
    code: 'throttled',
    sentence: 'More than {limit} requests of this grant are waiting for the FHIR server. Try again soon.',
    remedy: 'Send fewer requests at the same time.',
    retryAfter: '2',
  },
  'contents-too-many': {
    status: 503,
    code: 'transient',
    sentence: 'Cannot receive content: {limit} others are being received. Try again soon.',
    remedy: TRY_AGAIN,
    retryAfter: '5',
  },
  overwritten: {
    status: 409,
    code: 'conflict',
    sentence:
      'Cannot create {type}/{id}: another client created it at the same time, and the upstream FHIR server has replaced it. The audit trail has a record of this',
    remedy: LOST,
  },
  'deleted-newer': {
    status: 409,
    code: 'conflict',
    sentence:
      'Cannot delete {type}/{id}: another client changed it at the same time, and the upstream FHIR server has deleted the new version. The audit trail has a record of this',
    remedy: LOST,
  },
  // The status of an uncertain outcome: the other entries are carried out.
  undeleted: {
    status: 502,
    code: 'conflict',
    sentence:
      'Cannot delete {type}/{id}: it was changed at the same time, and the upstream FHIR server has carried out the transaction without this entry',
    remedy: 'Read the resource, and delete it again.',
  },
  referred: {
    status: 409,
    code: 'conflict',
    sentence: 'Cannot delete {type}/{id}: other resources refer to it',
    remedy: 'Change or delete the resources that refer to it first.',
  },
  'unbound-create': {
    status: 405,
    code: 'not-supported',
    sentence:
      'Cannot create this {type} with PUT: the upstream FHIR server could replace another resource. Use POST {type}',
    remedy: 'Create the resource with POST.',
  },
  'no-version': {
    status: 501,
    code: 'not-supported',
    sentence: 'Cannot write this {type}: the upstream FHIR server does not return its version',
    remedy: TELL,
  },
  'excluded-type': {
    status: 404,
    code: 'not-found',
    sentence: 'Cannot find {type} here: the gateway does not read this type from the upstream FHIR server',
    remedy: 'The CapabilityStatement (metadata) lists the types of this server.',
  },
  'absent-job': {
    status: 404,
    code: 'not-found',
    sentence: 'There is no such job: use the status URL as the client that started the job received it',
    remedy: 'Use the status URL unchanged, with a token of the same client and user.',
  },
} as const
