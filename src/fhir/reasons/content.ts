import { share } from './words.ts'

const CORRECT_BODY = 'Correct the body of the request.'
const CORRECT_PATCH = 'Compare the patch with the resource as it is stored, and correct it.'
const READ_AGAIN = 'Read the current version, and send the request again.'

/** Bodies of requests that cannot be read, or contradict the request. */
export const BODIES = {
  ...share(
    { status: 400, code: 'structure', remedy: CORRECT_BODY },
    {
      'body-empty': 'Cannot read body: it is empty',
      'body-malformed': 'Cannot read body: it is not valid JSON in UTF-8',
      'body-not-utf8': 'Cannot read body: it is not valid UTF-8',
      'body-not-gzip': 'Cannot read body: it is not valid gzip',
      'body-not-a-resource': 'Cannot read body: expected a {type} resource',
      'body-not-parameters': 'Cannot read body: expected Parameters with a value each',
    },
  ),
  ...share(
    { status: 400, code: 'invalid', remedy: 'Send a body that agrees with the URL.' },
    {
      'body-of-another-type': 'Cannot accept body: expected a resource of type {type}',
      'body-id-differs': 'Cannot update {type}/{id}: the id in the body is not the id in the URL',
      'match-id-differs': 'Cannot update {type}: the match has another id than the body',
    },
  ),
  'body-too-large': {
    status: 413,
    code: 'too-long',
    sentence: 'Cannot read body: it is larger than {limit} bytes',
    remedy: 'Send less data, or send the content of a Binary in its own content type.',
  },
  'wrong-content-type': {
    status: 415,
    code: 'not-supported',
    sentence: 'Cannot read body: expected {expected}',
    remedy: 'Send the body in this content type, and name it in “Content-Type”.',
  },
  'wrong-content-encoding': {
    status: 415,
    code: 'not-supported',
    sentence: 'Cannot read body: expected the encoding {expected}, or none',
    remedy: 'Compress the body as expected, or not at all.',
  },
  'not-acceptable': {
    status: 406,
    code: 'not-supported',
    sentence: 'Only application/fhir+json is supported.',
    cause: '“Accept” or “_format” does not allow JSON.',
    remedy: 'Send “Accept: application/fhir+json”.',
  },
  'invalid-resource': {
    status: 422,
    code: 'invalid',
    sentence: 'The resource violates the R4 definitions.',
    remedy: 'Correct the elements that the issues of the response name.',
  },
} as const

export const MALFORMED_PATCHES = share(
  {
    status: 400,
    code: 'structure',
    cause: 'The patch cannot be read. The response says why.',
    remedy: 'Correct the patch.',
  },
  {
    'patch-not-operations': 'Cannot apply patch: expected Parameters with operations',
    'patch-not-an-array': 'Cannot apply patch: expected an array of operations',
    'patch-operations-too-many': 'Cannot apply patch: it has more than {most} operations',
    'patch-operation-missing': 'Cannot apply patch: operation {index} is no operation',
    'patch-path-too-long': 'Cannot apply patch: operation {index} has a path of more than {most} characters',
    'patch-path-unsupported': 'Cannot apply patch: operation {index} has no path that is supported here',
    'patch-part-missing': 'Cannot apply patch: operation {index} has no {part}',
    'patch-value-unreadable': 'Cannot apply patch: operation {index} has no value that can be read',
    'patch-type-unknown': 'Cannot apply patch: operation {index} has no known type',
    'patch-op-unknown': 'Cannot apply patch: operation {index} has no known op',
    'patch-pointer-missing': 'Cannot apply patch: operation {index} has no JSON Pointer',
    'patch-pointer-too-long':
      'Cannot apply patch: the path of operation {index} has more than {most} characters',
  },
)

/** Patches that cannot be applied to this resource. */
export const UNUSABLE_PATCHES = share(
  {
    status: 422,
    code: 'processing',
    cause: 'The patch cannot be applied to the resource. The response says why.',
    remedy: CORRECT_PATCH,
  },
  {
    'patch-unusable': 'Cannot apply patch',
    'patch-costs-too-much':
      'Cannot apply patch: Cannot complete the request: it takes too much work. Send smaller patches, or divide the Bundle into several',
    'patch-shifts-too-much':
      'Cannot apply patch: it shifts or compares more than {most} items of lists and digits',
    'patch-value-too-deep':
      'Cannot apply patch: the value of operation {index} is nested over {most} levels deep',
    'patch-moves-into-itself': 'Cannot apply patch: a value cannot be moved into itself',
    'patch-test-failed': 'Cannot apply patch: test of {path} failed',
    'patch-container-missing': 'Cannot apply patch: there is nothing at {path} to go into',
    'patch-removes-resource': 'Cannot apply patch: the whole resource cannot be removed',
    'patch-copies-too-much': 'Cannot apply patch: it copies more than {most} characters',
    'patch-target-missing': 'Cannot apply patch: there is nothing at {path}',
    'patch-without-resource': 'Cannot apply patch: there is no resource',
    'patch-of-another-type': 'Cannot apply patch: the resource is not a {type}',
    'patch-path-to-nothing': 'Cannot apply patch: the path leads to nothing',
    'patch-path-to-several': 'Cannot apply patch: the path leads to several elements',
    'patch-element-taken': 'Cannot apply patch: there already is a {name}',
    'patch-replaces-resource': 'Cannot apply patch: the whole resource cannot be replaced',
    'patch-deletes-resource': 'Cannot apply patch: the whole resource cannot be deleted',
    'patch-path-not-to-list': 'Cannot apply patch: the path does not lead to a list',
    'patch-element-not-a-list': 'Cannot apply patch: {name} is not a list',
    'patch-place-missing': 'Cannot apply patch: there is no place {index} in {name}',
    'patch-element-without-parts': 'Cannot apply patch: {name} has no parts',
    'patch-element-of-another-type': 'Cannot apply patch: {name} cannot be a {type}',
    'patch-visits-too-much': 'Cannot apply patch: it visits more than {most} elements',
    'patch-element-unknown': 'Cannot apply patch: {type} has no element {name}',
    'patch-type-without-elements': 'Cannot apply patch: a {type} has no elements',
  },
)

/** Resources that are not there, not as expected, or outside the grant. */
export const RESOURCES = {
  ...share(
    { status: 412, code: 'conflict', remedy: READ_AGAIN },
    {
      'if-match-of-absent': 'Cannot write: If-Match names a version, and the resource does not exist',
      'if-match-differs': 'Cannot write: If-Match does not name the current version {version}',
      'if-match-of-unversioned': 'Cannot write: If-Match does not name the current version',
      'if-none-match-names-current': 'Cannot write: If-None-Match names the current version',
      'changed-while-written':
        'Cannot write: other changes were made at the same time. Send the request again',
      'changed-while-deleted':
        'Cannot delete: the resource was changed at the same time. Send the request again',
      'changed-while-read': 'Cannot read: the resource was changed at the same time. Send the request again',
      'match-deleted': 'Cannot update: the match was deleted at the same time. Send the request again',
      'match-created':
        'Cannot create: a matching resource was created at the same time. Send the request again',
      'match-written':
        'Cannot write: a matching resource was created at the same time. Send the request again',
    },
  ),
  'outside-access': {
    status: 403,
    code: 'forbidden',
    sentence: 'Not within the granted patient, user or filter.',
    // An absent resource gets the same text, so that the response reveals nothing (docs/decisions/0021-refused-and-absent.md).
    hint: "The token's scopes do not cover this resource, or it does not exist. A scope for its patient, in a wider context or without a filter may cover it; a user/ scope covers no more than the user's own rights",
    remedy: 'Use the ids of the launched patient, or request scopes for more.',
  },
  'hidden-target': {
    status: 403,
    code: 'forbidden',
    sentence:
      'Cannot store {element}: the resource that it refers to does not exist, or is not covered by the token',
    remedy: 'Refer to resources of the launched patient, and create them first.',
  },
  ...share(
    { status: 404, code: 'not-found', remedy: 'Compare the ids and parameters with the stored resources.' },
    {
      absent: 'Cannot find {type}/{id}',
      'no-match': 'Cannot find a {type} that matches the search parameters',
      'no-match-of-reference': 'Cannot resolve {element}: no {type} matches its search parameters',
    },
  ),
  gone: {
    status: 410,
    code: 'deleted',
    sentence: 'Cannot read {type}/{id}: it has been deleted',
    remedy: 'Read an earlier version from its history, or remove the reference.',
  },
  'multiple-matches': {
    status: 412,
    code: 'multiple-matches',
    sentence: 'Cannot choose a {type}: several match the search parameters',
    remedy: 'Add parameters, or search by an identifier.',
  },
  'unsupported-operation': {
    status: 404,
    code: 'not-supported',
    sentence: 'The operation {name} is not supported here.',
    remedy: 'The CapabilityStatement (metadata) lists the operations of this server.',
  },
} as const
