import { gzipSync } from 'node:zlib'
import { INCLUDES, PARAMETER_WEIGHT, QUERY_VALUES, SORT_KEYS } from '../../src/backends/sqlite/limits.ts'
import { GATEWAY_BODY_BYTES } from '../../src/backends/upstream/limits.ts'
import * as LIMITS from '../../src/fhir/limits.ts'
import {
  bundle,
  type Cases,
  fhirPathPatch,
  get,
  gets,
  jsonPatch,
  list,
  post,
  type RefusedCases,
  search,
  send,
} from './cases.ts'
import {
  ADD_NOTE,
  codings,
  condition,
  created,
  NO_NOTES,
  narrative,
  nest,
  notes,
  observation,
  patched,
  repeat,
} from './texts.ts'

const GZIP = { 'content-type': 'application/fhir+json', 'content-encoding': 'gzip' }
const SORTED = [
  'date',
  'code',
  'status',
  'subject',
  '_id',
  '_lastUpdated',
  'encounter',
  'category',
  'value-string',
]
const REPLACE_CODE = `[{"name":"type","valueCode":"replace"},{"name":"path","valueString":"Condition.code.text"},{"name":"value","valueString":"x"}]`
const longPath = (characters: number) =>
  `[{"name":"type","valueCode":"delete"},{"name":"path","valueString":"Condition.${'a'.repeat(characters - 10)}"}]`
const ADD_NOTES = repeat(LIMITS.PATCH_OPERATIONS - 1, () => ADD_NOTE)
const large = (operations: number, operation: string) => [
  `{"op":"add","path":"/note","value":[${repeat(40_000, () => '{"text":"x"}').join(',')}]}`,
  ...repeat(operations - 1, () => operation),
]

const question = (at: number) => `{"linkId":"l${at}","text":"x","type":"string"}`
const questions = (at: number) =>
  `${nest(39, `{"linkId":"g","text":"x","type":"group","item":[`, ']}', question(at))}`
const CHAINS = `List?${repeat(16, () => 'item._id=x').join('&')}`

/** What can be grown in a request to either FHIR server, up to its limit. */
export const ACCEPTED: Cases = {
  // First, while the Observations are those that were loaded.
  'characters that a reverse include adds': get('/Patient?_id=grown&_revinclude=Observation:subject'),
  'bytes of a body: a text': post(
    '/Observation',
    observation(`"valueString":"${'x'.repeat(LIMITS.BODY_BYTES - 200)}"`),
  ),
  'bytes of a body: base64': post(
    '/Binary',
    `{"resourceType":"Binary","contentType":"text/plain","data":"${'AAAA'.repeat(LIMITS.BODY_BYTES / 4 - 50)}"}`,
  ),
  'bytes of a body: raw content': send('POST', '/Binary', 'x'.repeat(3_900_000), {
    'content-type': 'text/plain',
  }),
  'bytes of a body after decompression': send(
    'POST',
    '/Observation',
    gzipSync(observation(`"valueString":"${'x'.repeat(LIMITS.BODY_BYTES - 200)}"`)),
    GZIP,
  ),
  'values of a body': post('/Observation', observation(notes(LIMITS.JSON_VALUES / 2 - 20))),
  'values of a resource that is validated': post(
    '/Observation/$validate',
    observation(notes(LIMITS.JSON_VALUES / 2 - 20)),
  ),
  'items of a Questionnaire that is validated': post(
    '/Questionnaire/$validate',
    `{"resourceType":"Questionnaire","status":"active","item":${list(repeat(40_000, question))}}`,
  ),
  'nested items of a Questionnaire that is validated': post(
    '/Questionnaire/$validate',
    `{"resourceType":"Questionnaire","status":"active","item":${list(repeat(1_000, questions))}}`,
  ),
  'elements of a StructureDefinition that is validated': post(
    '/StructureDefinition/$validate',
    `{"resourceType":"StructureDefinition","url":"http://a","name":"A","status":"active","kind":"resource","abstract":false,"type":"Patient","baseDefinition":"http://hl7.org/fhir/StructureDefinition/DomainResource","derivation":"constraint","differential":{"element":${list(repeat(40_000, at => `{"id":"Patient.e${at}","path":"Patient.e${at}"}`))}}}`,
  ),
  'entries of a Bundle that is validated': post(
    '/Bundle/$validate',
    `{"resourceType":"Bundle","type":"collection","entry":${list(repeat(30_000, at => `{"fullUrl":"urn:uuid:${at}","resource":{"resourceType":"Basic","id":"a${at}"}}`))}}`,
  ),
  'entities of a narrative': post('/Observation', observation(narrative('&lt;'.repeat(200_000)))),
  'items of a Questionnaire': post(
    '/Questionnaire',
    `{"resourceType":"Questionnaire","status":"active","item":${list(repeat(40_000, question))}}`,
  ),
  'digits of a decimal': post(
    '/Observation',
    observation(`"valueQuantity":{"value":0.${'1'.repeat(1_000_000)}}`),
  ),
  'a long URI': post(
    '/Observation',
    observation(
      `"code":{"coding":[{"system":"urn:${'a:'.repeat(50_000)}","code":"${'x '.repeat(50_000)}x"}]}`,
    ),
  ),
  'characters of a narrative': post(
    '/Observation',
    observation(narrative('<b>x</b>'.repeat(LIMITS.NARRATIVE_CHARACTERS / 8 - 20))),
  ),
  'search values of a resource': post('/Observation', observation(codings(LIMITS.INDEX_ROWS / 2 - 20))),
  'characters of a search': search('Observation', `code=${'x'.repeat(LIMITS.SEARCH_CHARACTERS - 10)}`),
  'values of a search': search(
    'Observation',
    `code=${repeat(QUERY_VALUES - PARAMETER_WEIGHT, at => `c${at}`).join(',')}`,
  ),
  'parameters of a search': search(
    'Observation',
    repeat(QUERY_VALUES / (1 + PARAMETER_WEIGHT), at => `code=${at}`).join('&'),
  ),
  'values that no index finds': search(
    'Patient',
    repeat(QUERY_VALUES / (10 + PARAMETER_WEIGHT) - 1, at => `name:contains=a${at}`).join('&'),
  ),
  'links of a chain': search(
    'Observation',
    'derived-from:Observation.derived-from:Observation.subject:Patient.name=x',
  ),
  'sort keys': search('Observation', `_sort=${SORTED.slice(0, SORT_KEYS).join(',')}&_count=1000`),
  includes: search('Observation', repeat(INCLUDES, () => '_include=Observation:subject').join('&')),
  'iterations of a reverse include': get(
    '/Observation?_id=chain-0&_revinclude:iterate=Observation:derived-from',
  ),
  'resources that a reverse include adds': get('/Patient?_id=grown&_revinclude=Basic:subject'),
  'a page of large resources': get('/Observation?_count=1000&_sort=-_lastUpdated'),
  'a page of 1,000': get('/Observation?_count=1000'),
  'a page of a history': get('/_history?_count=1000'),
  'a page of a history of one type': get('/Observation/_history?_count=1000'),
  'a page of $everything': get('/Patient/grown/$everything?_count=1000'),
  'a page of AuditEvents': get('/AuditEvent?_count=1000'),
  'Observations that $lastn returns': get('/Observation/$lastn?patient=grown&code:missing=true&max=1000'),
  'metadata, compressed': get('/metadata', { 'accept-encoding': 'br' }),
  'operations of a JSON Patch': jsonPatch([NO_NOTES, ...ADD_NOTES]),
  'operations of a JSON Patch on a large value': jsonPatch(large(100, ADD_NOTE)),
  'operations of a FHIRPath Patch': fhirPathPatch(repeat(LIMITS.PATCH_OPERATIONS, () => REPLACE_CODE)),
  'entries of a batch: reads': gets('batch', 'Patient/grown', LIMITS.BATCH_ENTRIES),
  'entries of a batch: chains to all types': gets('batch', CHAINS, LIMITS.BATCH_ENTRIES),
  'entries of a batch: creates': bundle(
    'batch',
    repeat(LIMITS.BATCH_ENTRIES, at => created(condition(), at)),
  ),
  'entries of a transaction: creates': bundle(
    'transaction',
    repeat(LIMITS.TRANSACTION_ENTRIES, at => created(condition(), at)),
  ),
  'JSON Patches of a batch': bundle(
    'batch',
    repeat(14, at => patched([at === 0 ? NO_NOTES : ADD_NOTE, ...ADD_NOTES])),
  ),
  'response of a batch: pages': gets('batch', 'Observation?_count=1000', LIMITS.BATCH_ENTRIES),
  'response of a batch: histories': gets('batch', '_history?_count=1000', LIMITS.BATCH_ENTRIES),
  'response of a batch: $everything': gets(
    'batch',
    'Patient/grown/$everything?_count=1000',
    LIMITS.BATCH_ENTRIES,
  ),
  'a long list in Prefer and If-None-Match': get('/Patient/grown', {
    prefer: repeat(2_000, () => 'a=b').join(','),
    'if-none-match': repeat(800, () => 'W/"9"').join(','),
  }),
}

/** Bodies beyond the limit of their bytes, which the gateway has another default for, and a form just within it. */
function refuseBodies(bytes: number): RefusedCases {
  const names = new RegExp(`${bytes} bytes`)
  return {
    'bytes of a body': [names, post('/Observation', observation(`"valueString":"${'x'.repeat(bytes)}"`))],
    'bytes of a form': [names, search('Observation', `code=${'x'.repeat(bytes)}`)],
    'bytes of a body after decompression': [
      names,
      send('POST', '/Observation', gzipSync(Buffer.alloc(200_000_000, 'x')), GZIP),
    ],
    'characters of a form': [/65536 characters/, search('Observation', `code=${'x'.repeat(bytes - 10)}`)],
  }
}

/** Beyond a limit. */
export const REFUSED: RefusedCases = {
  ...refuseBodies(LIMITS.BODY_BYTES),
  'characters of an access token': [
    /12288 characters/,
    ({ fhirUrl }) => ({
      url: `${fhirUrl}/Patient/grown`,
      headers: { authorization: `Bearer ${'a'.repeat(6_000)}.${'b'.repeat(6_000)}.${'c'.repeat(2_000)}` },
    }),
  ],
  'levels of a body: arrays': [/500 levels/, post('/Observation', nest(1_000_000, '[', ']'))],
  'levels of a body: objects': [/500 levels/, post('/Observation', nest(100_000, '{"a":', '}', '1'))],
  'levels of an extension': [
    /500 levels/,
    post(
      '/Observation',
      observation(`"extension":${nest(20_000, '[{"url":"http://a","extension":', '}]', '[]')}`),
    ),
  ],
  'values of a body: items': [
    /200000 values/,
    post('/Observation', observation(`"note":${list(repeat(400_000, () => '1'))}`)),
  ],
  'values of a body: members': [
    /200000 values/,
    post('/Observation', `{"resourceType":"Observation",${repeat(400_000, at => `"a${at}":1`).join(',')}}`),
  ],
  'values of a body: decimals': [
    /200000 values/,
    post(
      '/Observation',
      observation(`"component":${list(repeat(80_000, at => `{"a":1,"b":{"value":${at}.10}}`))}`),
    ),
  ],
  'characters of a narrative': [
    /1048576 characters/,
    post('/Observation', observation(narrative('<b>x</b>'.repeat(LIMITS.BODY_BYTES / 8 - 100)))),
  ],
  'tags of a narrative': [/XHTML/, post('/Observation', observation(narrative('<b>'.repeat(300_000))))],
  'attributes of a narrative': [
    /XHTML/,
    post('/Observation', observation(narrative('x', repeat(50_000, at => ` a${at}='x'`).join('')))),
  ],
  'digits of a time': [
    /date/,
    post('/Observation', observation(`"effectiveDateTime":"2020-01-01T00:00:00.${'1'.repeat(1_000_000)}Z"`)),
  ],
  'faults of a resource': [
    /note\[0\]/,
    post('/Observation', observation(`"note":${list(repeat(90_000, () => '{"a":1}'))}`)),
  ],
  'contained resources': [
    /contained/i,
    post(
      '/Observation',
      observation(`"contained":${list(repeat(10_000, at => `{"resourceType":"Patient","id":"c${at}"}`))}`),
    ),
  ],
  'search values of a resource': [/10000 search values/, post('/Observation', observation(codings(30_000)))],
  'characters of a search': [/65536 characters/, search('Observation', `code=${'x'.repeat(70_000)}`)],
  'parameters of a search': [/1000/, search('Observation', repeat(5_000, () => 'code=x').join('&'))],
  'values of a search': [/values/, search('Observation', `code=${repeat(30_000, () => 'c').join(',')}`)],
  'values that no index finds': [
    /400 values/,
    search('Patient', repeat(60, () => 'name:contains=a').join('&')),
  ],
  'steps of a search': [
    /2500 steps/,
    search('Observation', repeat(300, () => 'focus.focus.focus.identifier=x').join('&')),
  ],
  'links of a chain': [
    /3 links/,
    search('Observation', `${repeat(40, () => 'derived-from:Observation').join('.')}.code=x`),
  ],
  'sort keys': [/8 parameters/, search('Observation', `_sort=${SORTED.join(',')}`)],
  includes: [
    /200 parameters/,
    search('Observation', repeat(INCLUDES + 1, () => '_include=Observation:subject').join('&')),
  ],
  'types that includes follow': [
    /1000/,
    search('Observation', repeat(100, () => '_include=*&_revinclude=*').join('&')),
  ],
  'resources that a reverse include adds': [
    /5000/,
    get('/Patient?_id=grown,other&_revinclude=Basic:subject'),
  ],
  'resources on a page': [/1000/, get('/Observation?_count=many')],
  'Observations that $lastn returns': [/1000/, get('/Observation/$lastn?patient=grown&max=1001')],
  'characters of an id': [/64/, get(`/Observation/${'x'.repeat(15_000)}`)],
  'operations of a JSON Patch': [
    /1000 operations/,
    jsonPatch(repeat(LIMITS.PATCH_OPERATIONS + 1, () => ADD_NOTE)),
  ],
  'items that a JSON Patch shifts': [
    /5000000 items/,
    jsonPatch(large(LIMITS.PATCH_OPERATIONS, '{"op":"move","from":"/note/1","path":"/note/0"}')),
  ],
  'many operations of a JSON Patch': [/200000 values/, jsonPatch(repeat(100_000, () => ADD_NOTE))],
  'tests of a large value': [
    /test/,
    jsonPatch(large(LIMITS.PATCH_OPERATIONS, '{"op":"test","path":"/note","value":[]}')),
  ],
  'digits of a decimal that a JSON Patch tests': [
    /test/,
    jsonPatch([
      '{"op":"add","path":"/onsetAge","value":{"value":1}}',
      `{"op":"test","path":"/onsetAge/value","value":1.${'0'.repeat(1_000_000)}1}`,
    ]),
  ],
  'copies that double': [
    /1048576 characters/,
    jsonPatch([
      `{"op":"add","path":"/note","value":[{"text":"${'x'.repeat(1000)}"}]}`,
      ...repeat(40, () => '{"op":"copy","from":"/note","path":"/note/-"}'),
    ]),
  ],
  'characters of a path in a JSON Patch': [
    /1000 characters/,
    jsonPatch([`{"op":"add","path":"${'/a'.repeat(1_000_000)}","value":1}`]),
  ],
  'levels of a value in a patch': [
    /100 levels/,
    jsonPatch([`{"op":"add","path":"/note","value":${nest(450, '[', ']')}}`]),
  ],
  'operations of a FHIRPath Patch': [
    /1000 operations/,
    fhirPathPatch(repeat(LIMITS.PATCH_OPERATIONS + 1, () => REPLACE_CODE)),
  ],
  'characters of a path in a FHIRPath Patch': [/1000 characters/, fhirPathPatch([longPath(1_000_000)])],
  'entries of a batch': [/batch may have up to 2000 entries/, gets('batch', 'Patient/grown', 10_000)],
  'entries of a transaction': [
    /transaction may have up to 1000 entries/,
    bundle(
      'transaction',
      repeat(10_000, at => created(condition(), at)),
    ),
  ],
  'JSON Patches of a Bundle': [
    /1048576 characters of base64/,
    bundle(
      'batch',
      repeat(40, () => patched(ADD_NOTES)),
    ),
  ],
  'search values of a transaction': [
    /10000 search values/,
    bundle(
      'transaction',
      repeat(900, at =>
        created(
          observation(
            `"derivedFrom":${list(repeat(100, to => `{"reference":"urn:uuid:${(at + to) % 900}"}`))}`,
          ),
          at,
        ),
      ),
    ),
  ],
  'response of a transaction': [
    /4194304 bytes|too much work/,
    gets('transaction', 'Observation?_count=1000', 500),
  ],
}

/** Beyond a limit of the gateway. */
export const REFUSED_BY_GATEWAY: RefusedCases = { ...REFUSED, ...refuseBodies(GATEWAY_BODY_BYTES) }

/** What the embedded server and the gateway answer differently. */
export const ANSWERED: Cases = {
  'entries of a transaction: chains to all types': gets('transaction', CHAINS, LIMITS.TRANSACTION_ENTRIES),
  'searches of a transaction': bundle(
    'transaction',
    repeat(LIMITS.TRANSACTION_ENTRIES, at =>
      created(condition(), at, `,"ifNoneExist":"identifier=urn:x|${at}"`),
    ),
  ),
  'levels of a body': post('/Basic', nest(LIMITS.JSON_DEPTH - 1, '{"a":', '}', '1')),
}
