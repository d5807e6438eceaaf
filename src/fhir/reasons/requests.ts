import { share } from './words.ts'

const COMPARE =
  'Compare the method and the URL with the FHIR REST API: GET [base]/Observation/id, GET [base]/Observation?patient=id.'
const CORRECT_PATH = 'Join the FHIR base URL, the resource type and the id with one slash each.'

/** Requests that are not FHIR interactions. They are refused, and never normalized. */
export const REQUESTS = {
  ...share(
    { status: 400, code: 'invalid', remedy: CORRECT_PATH },
    {
      'path-outside-base': 'Cannot read path: it is not below the FHIR base',
      'path-outside-named-base': 'Cannot read path: it is not below the FHIR base {base}',
      'path-with-empty-segment': 'Cannot read path: it has an empty segment',
      'path-with-dots': 'Cannot read path: it has a dot segment',
      'path-with-encoded-character': 'Cannot read path: it has an encoded character',
      'path-with-foreign-character': 'Cannot read path: it has a character that FHIR does not use',
      'id-malformed': 'Cannot read id: FHIR ids have 1 to 64 letters, digits, dots and hyphens',
      'version-id-malformed': 'Cannot read version id',
      'operation-name-malformed': 'Cannot read operation name',
    },
  ),
  ...share(
    { status: 404, code: 'not-found', remedy: COMPARE },
    {
      'url-unknown': 'Cannot find this URL on the FHIR server',
      'resource-type-unknown': 'Cannot find this resource type in FHIR R4',
    },
  ),
  ...share(
    { status: 405, code: 'not-supported', remedy: COMPARE },
    {
      'method-unknown': 'Cannot process this method: FHIR uses GET, HEAD, POST, PUT, PATCH and DELETE',
      'method-not-allowed': 'Cannot process this method at this URL',
      'audit-event-versions': 'Cannot read versions of an AuditEvent: there is only one',
      'audit-event-written': 'Cannot write AuditEvents: only the server creates them',
      'audit-event-in-bundle': 'Cannot read AuditEvents in a Bundle: request them separately',
    },
  ),
  ...share(
    { status: 400, code: 'invalid', remedy: COMPARE },
    {
      'method-overridden': 'Cannot accept a method override: send the method itself',
      'if-none-exist-unsupported': 'Cannot accept If-None-Exist: only a create supports it',
      'if-none-exist-malformed':
        'Cannot read If-None-Exist: expected search parameters, alone or after {type}? of this FHIR server',
      'parameters-malformed': 'Cannot read {part}: it is malformed',
      'criteria-missing': 'Cannot do this on a whole type: an id or search parameters are needed',
      'parameters-unsupported':
        'Cannot accept these parameters: this interaction supports _format, _pretty, _summary and _elements',
      'bundle-in-bundle': 'Cannot accept a Bundle inside a Bundle',
      'provenance-unsupported':
        'Cannot accept X-Provenance: only an update, and a create without If-None-Exist, supports it',
      'provenance-of-stream':
        'Cannot accept X-Provenance: content that is larger than a body, or has no Content-Length, does not support it',
      'provenance-malformed':
        'Cannot read X-Provenance: expected a Provenance as JSON in ASCII, with \\u for other characters',
      'type-parameter-unknown': 'Cannot read _type: it names an unknown resource type',
      'chain-of-several-types': 'Cannot follow a chain in a search of several types: search one type',
      'written-body-not-a-resource': 'Cannot read body: it is not a resource',
      'written-type-differs': 'Cannot write: the resource type of the body differs from the URL',
      'written-id-differs': 'Cannot write: the id of the body differs from the URL',
      'patch-of-unknown-kind': 'Cannot read body: it is neither a JSON Patch nor a FHIRPath Patch',
    },
  ),
  ...share(
    {
      status: 400,
      code: 'too-costly',
      remedy: 'Send a shorter request, or divide it into several. A long search can be sent by POST.',
    },
    {
      'parameters-too-long': 'Cannot read {part}: it has more than {most} characters',
      'parameters-too-many': 'Cannot read {part}: it has more than {most} parameters and values',
    },
  ),
  'search-body-not-a-form': {
    status: 415,
    code: 'not-supported',
    sentence: 'Cannot search: the body of _search is application/x-www-form-urlencoded',
    cause: 'A search by POST has its parameters in the body, as a form.',
    remedy: 'Send “Content-Type: application/x-www-form-urlencoded”, or search by GET.',
  },
} as const
