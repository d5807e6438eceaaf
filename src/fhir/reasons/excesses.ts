import { share } from './words.ts'

const WORK = 'Cannot complete the request: it takes too much work.'
const DIVIDE = 'Divide the Bundle into several'

/** Requests that would take more than one request may. */
export const EXCESSES = share(
  { status: 400, code: 'too-costly', remedy: 'Request or send less at once.' },
  {
    'work-of-bundle': `${WORK} ${DIVIDE}`,
    'work-of-parameters': `${WORK} Search by fewer parameters and values, or divide the Bundle into several`,
    'work-of-values': `${WORK} Search by fewer values, and name the type that a chain leads to`,
    'work-of-patches': `${WORK} Send smaller patches, or divide the Bundle into several`,
    'work-of-references': `${WORK} Send resources with fewer references, or divide the Bundle into several`,
    'work-of-rows': `${WORK} Search by fewer values, or add a parameter that fewer resources match`,
    'work-of-statements': `${WORK} Search by fewer parameters, or divide the Bundle into several`,
    'work-of-requests': `${WORK} Request less data, name the type that a chain leads to, or divide the Bundle into several`,
    'work-of-characters': `${WORK} Request less data`,
    'body-too-complex': 'Cannot read body: {excess}',
    'bundle-entries-too-many': 'Cannot process Bundle: a {type} may have up to {most} entries',
    'bundle-patches-too-long':
      'Cannot process Bundle: its JSON Patches have more than {most} characters of base64',
    'bundle-response-too-large': 'Cannot process entry: the response to the Bundle would exceed {most} bytes',
    'client-gone': 'Cannot process entry: the client has closed the connection',
    'client-gone-from-search': 'Cannot complete the search: the client has closed the connection',
    'client-gone-from-upstream': 'Cannot continue: the caller has closed the connection',
    'references-too-many':
      'Cannot check more than {most} references to resources of patients in one resource',
    'binaries-too-many': 'Cannot write DocumentReference: it names more than {most} Binaries',
    'validated-too-large': 'Cannot validate {type}/{id}: it is too large',
    'patched-too-large': 'Cannot patch {type}/{id}: it is too large. Update it with PUT',
    'read-too-large': 'Cannot read {type}/{id} in a Bundle: it is too large. Read it by itself',
    'observations-too-many':
      'Cannot choose among more than {most} Observations or {characters} characters: name the patient or a code',
    'query-values-too-many':
      'Cannot search by more than {most} values, of which each parameter counts as {weight}, or by a chain through so many types: name the type',
    'sort-keys-too-many': 'Cannot sort by more than {most} parameters',
    'includes-too-many': 'Cannot include by more than {most} parameters',
    'included-too-many':
      'Cannot include more than {most} resources or {characters} characters: request smaller pages',
    'referenced-too-many':
      'Cannot include more than {most} resources or {characters} characters: name the types by _type',
    'condition-too-wide':
      'Cannot find the resource of a conditional request: too many resources meet a part of the condition. Search by an identifier',
    'index-rows-too-many': 'Cannot store resource: it has more than {most} search values',
    'transaction-rows-too-many': 'Cannot process transaction: it writes more than {most} search values',
    'versions-too-many':
      'Cannot check more than {most} versions, or {characters} characters of them, for one page: request the history of one resource, or with _since',
    'upstream-characters-too-many':
      'Cannot read more than {most} characters from the upstream FHIR server for one request: request less data',
    'upstream-bytes-too-many':
      'Cannot read more than {most} bytes from the upstream FHIR server for one request: request less data',
    'upstream-page-too-large': 'Cannot use a page of the upstream FHIR server, even with _count=1: {excess}',
    'checked-too-many': 'Cannot check more than {most} resources for this request: request less data',
    'read-unversioned':
      'Cannot read: the resource is too large, and the upstream FHIR server does not return its version',
  },
)
