import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { auditRefusal } from '../src/audit/index.ts'
import { createRecords } from '../src/audit-record/index.ts'
import { explainReason } from '../src/auth/words/explanation.ts'
import {
  createAuthenticator,
  type Fhir,
  patientAccess,
  type Reply,
  startFhir,
} from '../src/backends/sqlite/testing/fhir.ts'
import { isFailure } from '../src/core/index.ts'
import {
  applyPatch,
  createBodyLimits,
  FHIR_REASONS,
  type FhirProblem,
  type FhirReason,
  failFor,
  limits,
  listGatewayOperations,
  parseInteraction,
  parsePassedOperation,
  parseSearch,
  readBody,
  SearchSteps,
  Work,
} from '../src/fhir/index.ts'
import { parseOperations } from '../src/fhir/patch/operations.ts'
import { checkFullUrls } from '../src/fhir-api/bundle/steps.ts'
import { checkRequest } from '../src/interceptor/decision/check-request.ts'
import { checkHostRules } from '../src/interceptor/host/host-rules.ts'
import { type Refusal, refuse } from '../src/interceptor/refuse.ts'
import {
  decideRequest,
  makeGrant,
  policy,
  type TestDecisionContext,
} from '../src/interceptor/testing/decide-request.ts'
import { checkClaims } from '../src/interceptor/token/check-claims.ts'
import { createVerifier } from '../src/interceptor/token/verifier.ts'
import { checkPatch, computeAccess, fullAccess } from '../src/smart/index.ts'
import { rsaPair } from './support/rsa-pair.ts'

/** Made to happen by the tests of a race, an outage, a large amount of data or a host, which these files set up. */
const ELSEWHERE = {
  'no-configuration': 'src/interceptor/host/configuration.test.ts',
  'no-trail': 'src/interceptor/trail/sender.test.ts',
  broken: 'src/interceptor/explain.test.ts',
  'token-revoked': 'src/interceptor/token/revocations.test.ts',
  'response-not-within': 'src/interceptor/host/responses.test.ts',
  'stored-not-within': 'src/interceptor/host/writes.test.ts',
  'stored-not-provided': 'src/interceptor/host/decisions.test.ts',
  'body-not-read': 'src/interceptor/host/check-exchange.test.ts',
  'reference-not-limited': 'src/interceptor/host/writes.test.ts',
  'provenance-not-checked': 'src/interceptor/host/writes.test.ts',
  'response-without-body': 'src/interceptor/host/responses.test.ts',
  'provenance-without-patient': 'test/x-provenance.test.ts',
  'provenance-of-stream': 'src/backends/upstream/pass/streamed-contents.test.ts',
  'path-outside-named-base': 'src/interceptor/host/host.test.ts',
  'audit-event-versions': 'src/audit/fhir/audit-events.test.ts',
  'audit-page-link-changed': 'src/audit/fhir/audit-events.test.ts',
  'audit-sort-unsupported': 'src/audit/fhir/audit-events.test.ts',
  'audit-include-unsupported': 'src/audit/fhir/audit-events.test.ts',
  'audit-chain-unsupported': 'src/audit/fhir/audit-events.test.ts',
  'audit-values-too-many': 'src/audit/fhir/audit-events.test.ts',
  'hidden-target': 'src/fhir-api/access/check-content.test.ts',
  'changed-while-written': 'src/backends/sqlite/conformance.test.ts',
  'changed-while-deleted': 'src/backends/upstream/hapi.test.ts',
  'changed-while-read': 'src/backends/upstream/read/large-resources.test.ts',
  'match-deleted': 'src/backends/upstream/hapi.test.ts',
  'match-created': 'src/backends/upstream/hapi.test.ts',
  'match-written': 'src/backends/upstream/hapi.test.ts',
  'if-match-of-unversioned': 'src/backends/upstream/conformance.test.ts',
  'chain-in-types': 'src/backends/upstream/search/hostile-searches.test.ts',
  'patient-malformed': 'src/backends/upstream/operations/operations.test.ts',
  'client-gone': 'src/backends/sqlite/bundle/bundle.test.ts',
  'client-gone-from-search': 'src/backends/sqlite/search/planner/search-scope.test.ts',
  'client-gone-from-upstream': 'src/backends/upstream/http/watch.test.ts',
  'bundle-response-too-large': 'src/backends/sqlite/bundle/bundle.test.ts',
  'validated-too-large': 'src/backends/upstream/read/large-resources.test.ts',
  'patched-too-large': 'src/backends/upstream/read/large-resources.test.ts',
  'read-too-large': 'src/backends/upstream/read/large-resources.test.ts',
  'read-unversioned': 'src/backends/upstream/read/large-resources.test.ts',
  'references-too-many': 'src/fhir-api/access/check-references.test.ts',
  'binaries-too-many': 'src/fhir-api/access/binaries.test.ts',
  'observations-too-many': 'src/backends/sqlite/search/search.test.ts',
  'included-too-many': 'src/backends/sqlite/search/paging.test.ts',
  'referenced-too-many': 'src/backends/sqlite/search/paging.test.ts',
  'condition-too-wide': 'src/backends/sqlite/search/plans.test.ts',
  'versions-too-many': 'src/backends/sqlite/history/history.test.ts',
  'index-rows-too-many': 'src/backends/sqlite/bundle/bundle.test.ts',
  'transaction-rows-too-many': 'src/backends/sqlite/bundle/bundle.test.ts',
  'upstream-characters-too-many': 'src/backends/upstream/http/allowance.test.ts',
  'upstream-bytes-too-many': 'src/backends/upstream/read/large-resources.test.ts',
  'upstream-page-too-large': 'src/backends/upstream/http/hostile-responses.test.ts',
  'checked-too-many': 'src/backends/upstream/search/find-history.test.ts',
  'upstream-unreachable': 'src/backends/upstream/http/transport.test.ts',
  'upstream-unreachable-in-change': 'src/backends/upstream/http/transport.test.ts',
  'upstream-late': 'src/backends/upstream/http/transport.test.ts',
  'upstream-late-in-change': 'src/backends/upstream/http/transport.test.ts',
  'upstream-broken': 'src/backends/upstream/http/hostile-responses.test.ts',
  'upstream-broken-in-change': 'src/backends/upstream/http/hostile-responses.test.ts',
  'upstream-declined': 'src/backends/upstream/hapi.test.ts',
  'grant-requests-too-many': 'src/backends/upstream/http/slots.test.ts',
  'contents-too-many': 'src/backends/upstream/pass/streamed-contents.test.ts',
  overwritten: 'src/backends/upstream/hapi.test.ts',
  'deleted-newer': 'src/backends/upstream/hapi.test.ts',
  undeleted: 'src/backends/upstream/hapi.test.ts',
  referred: 'src/backends/upstream/hapi.test.ts',
  'unbound-create': 'src/backends/upstream/hapi.test.ts',
  'no-version': 'src/backends/upstream/hapi.test.ts',
  'excluded-type': 'src/backends/upstream/conformance-medplum.test.ts',
  'absent-job': 'src/backends/upstream/operations/operations.test.ts',
  'export-needs-service': 'test/bulk-export.test.ts',
  'export-type-not-covered': 'test/bulk-export.test.ts',
  'export-of-nothing': 'test/bulk-export.test.ts',
  'export-parameter-unknown': 'test/bulk-export.test.ts',
  'export-parameter-malformed': 'test/bulk-export.test.ts',
  'export-filter-unsupported': 'test/bulk-export.test.ts',
  'export-type-unsupported': 'test/bulk-export.test.ts',
  'export-type-unorganized': 'test/bulk-export.test.ts',
  'export-patient-unknown': 'test/bulk-export.test.ts',
  'export-group-unknown': 'test/bulk-export.test.ts',
  'export-unknown': 'test/bulk-export.test.ts',
  'export-polled-early': 'test/bulk-export.test.ts',
  'export-jobs-too-many': 'test/bulk-export.test.ts',
  'export-downloads-too-many': 'test/bulk-export.test.ts',
  'origin-refused': 'test/mcp-reasons.test.ts',
  'message-too-large': 'test/mcp-reasons.test.ts',
  'message-of-other-type': 'test/mcp-reasons.test.ts',
  'message-not-json': 'test/mcp-reasons.test.ts',
  'message-malformed': 'test/mcp-reasons.test.ts',
  'message-headers-differ': 'test/mcp-reasons.test.ts',
  'mcp-version-unsupported': 'test/mcp-reasons.test.ts',
  'mcp-method-unknown': 'test/mcp-reasons.test.ts',
  'mcp-parameters-wrong': 'test/mcp-reasons.test.ts',
  'tool-unknown': 'test/mcp-reasons.test.ts',
  'tool-arguments-wrong': 'test/mcp-reasons.test.ts',
  'tool-misused': 'test/mcp-reasons.test.ts',
  'proposals-too-many': 'test/mcp-reasons.test.ts',
  'calls-too-many': 'test/mcp-reasons.test.ts',
} as const satisfies Partial<Record<FhirReason, string>>

type Outcome = Refusal | Reply

interface World {
  readonly fhir: Fhir
  /** A client with access to one patient. */
  readonly limited: Fhir
}

type Way = (world: World) => Outcome | Promise<Outcome>

const ONE = { patient: '1' }
const PATCH = { 'content-type': 'application/json-patch+json' }

/** What the parser of requests says about a request line. */
function ask(line: string, headers: Readonly<Record<string, string>> = {}, form = ''): Way {
  return () => {
    const [method = '', url = ''] = line.split(/ (.*)/s)
    const [path = '', query = ''] = url.split(/\?(.*)/s)
    const parsed = parseInteraction({ method, path, query, headers, form })
    assert(isFailure(parsed), line)
    return parsed
  }
}

const send =
  (line: string, body?: unknown, headers?: Readonly<Record<string, string>>): Way =>
  ({ fhir }) =>
    fhir(line, body, headers)

function decide(line: string, context: TestDecisionContext): Way {
  return () => {
    const decision = decideRequest(line, context)
    assert(!decision.allowed, line)
    return decision.refusal
  }
}

/** What a host that cannot limit its searches refuses. */
function rule(line: string, scope = 'patient/*.cruds'): Way {
  return () => {
    const [method = '', url = ''] = line.split(/ (.*)/s)
    const [path = '', query = ''] = url.split(/\?(.*)/s)
    const interaction = parseInteraction({ method, path, query, headers: {}, form: '' })
    assert(!isFailure(interaction), line)
    const refusal = checkHostRules(
      interaction,
      computeAccess(makeGrant({ scope, ...ONE }), policy),
      policy.fhirBaseUrl,
    )
    assert(refusal, line)
    return refusal
  }
}

/** What the interceptor says about the content of a write. */
function write(line: string, body: unknown, scope = 'patient/*.cruds'): Way {
  return () => {
    const [method = '', path = ''] = line.split(' ')
    const interaction = parseInteraction({ method, path, query: '', headers: {}, form: '' })
    assert(!isFailure(interaction), line)
    const decision = checkRequest(interaction, body, makeGrant({ scope, ...ONE }), policy)
    assert(!decision.allowed, line)
    return decision.refusal
  }
}

function patch(content: unknown, resource: unknown = { resourceType: 'Patient', gender: 'male' }): Way {
  return () => {
    const patched = applyPatch(resource, content, new Work())
    assert(isFailure(patched))
    return patched
  }
}

/** A FHIRPath Patch of one operation. */
function operate(...parts: readonly object[]): Way {
  return patch({ resourceType: 'Parameters', parameter: [{ name: 'operation', part: parts }] })
}

const type = (valueCode: string) => ({ name: 'type', valueCode })
const path = (valueString: string) => ({ name: 'path', valueString })
const named = (valueString: string) => ({ name: 'name', valueString })
const value = (content: object) => ({ name: 'value', ...content })
const place = (name: string, valueInteger: number) => ({ name, valueInteger })

function search(name: string, text: string, on = 'Observation'): Way {
  return () => {
    const clause = parseSearch(on, name, text, policy.fhirBaseUrl, new SearchSteps(new Work()))
    assert(isFailure(clause), name)
    return clause
  }
}

const bundle = (type: unknown, ...entry: readonly unknown[]) => ({ resourceType: 'Bundle', type, entry })
const get = { request: { method: 'GET', url: 'Patient/1' } }
const condition = (id?: string) => ({
  resourceType: 'Condition',
  ...(id !== undefined && { id }),
  subject: { reference: 'Patient/1' },
})
const put = (id: string) => ({ request: { method: 'PUT', url: `Condition/${id}` }, resource: condition(id) })

/** The failure when work of a kind is no longer left. */
const exhaust =
  (kind: Parameters<Work['count']>[0]): Way =>
  () => {
    const failure = new Work(1).count(kind, 1_000)
    assert(failure)
    return failure
  }

const HEADER = { alg: 'RS256', typ: 'at+jwt', kid: 'k' }
const CLAIMS = { iss: 'http://auth.test', aud: 'http://fhir.test/fhir', exp: 100 }

function token(header: object, claims: object): Way {
  return () => {
    const jwt = {
      header: { ...HEADER, ...header },
      claims: { ...CLAIMS, ...claims },
      input: Buffer.alloc(0),
      signature: Buffer.alloc(0),
    }
    const expected = {
      issuer: CLAIMS.iss,
      audiences: [CLAIMS.aud],
      algorithms: ['RS256'],
    } as const
    const fault = checkClaims(jwt, expected, 1_000)
    assert(fault)
    return fault
  }
}

type Found = Awaited<ReturnType<Parameters<typeof createVerifier>[0]['issuers'][0]['keys']['find']>>

/** What the verifier of tokens says, if the key set has this key and the signature is right or wrong. */
function verify(authorization: string | undefined, key: Found = 'unknown', isRight = true, scope = ''): Way {
  return async () => {
    const keys = { find: async () => key, ready: () => true, keepFresh: async () => {} }
    const verifier = createVerifier({
      issuers: [
        {
          issuer: CLAIMS.iss,
          audiences: [CLAIMS.aud],
          algorithms: ['RS256'],
          keys,
          readGrant: () => makeGrant({ scope }),
          createCaller: grant => grant,
        },
      ],
      clock: () => 1_000,
      verify: () => isRight,
    })
    const found = await verifier.verify(authorization)
    assert(isFailure(found))
    return found
  }
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const JWT = `Bearer ${encode(HEADER)}.${encode(CLAIMS)}.${encode({})}`
const KEY: Found = { kid: 'k', algorithms: ['RS256'], publicKey: rsaPair(0).publicKey }

const CLINICIAN = { scope: 'user/*.cruds', fhirUser: 'Practitioner/1' }
const EMPTY = { patients: new Set<string>(), organizations: [], careTeams: [] }
const OTHERS = { ...EMPTY, patients: new Set(['2']) }

/** The compiler finds a reason that is neither here nor above. */
const WAYS: Readonly<Record<Exclude<FhirReason, keyof typeof ELSEWHERE>, Way>> = {
  'no-bearer': verify(undefined),
  'token-not-a-jwt': verify('Bearer x'),
  'token-too-long': verify(`Bearer ${'x'.repeat(limits.TOKEN_CHARACTERS + 1)}`),
  'no-keys': verify(JWT, 'unavailable'),
  'token-key-unknown': verify(JWT),
  'token-signature-wrong': verify(JWT, KEY, false),
  'token-scopes-too-many': verify(
    JWT,
    KEY,
    true,
    Array.from({ length: limits.GRANULAR_SCOPES + 1 }, (_, at) => `patient/Condition.rs?code=${at}`).join(
      ' ',
    ),
  ),
  'token-parameters-too-many': verify(
    JWT,
    KEY,
    true,
    Array.from(
      { length: 100 },
      (_, at) => `patient/Condition.rs?code=${at}&category=x&onset-date=1&severity=2`,
    ).join(' '),
  ),
  'expired-token': token({}, { exp: 0 }),
  'token-alg-wrong': token({ alg: 'none' }, {}),
  'token-kid-missing': token({ kid: undefined }, {}),
  'token-crit-unsupported': token({ crit: [] }, {}),
  'token-typ-wrong': token({ typ: 'JWT' }, {}),
  'token-iss-wrong': token({}, { iss: 'x' }),
  'token-aud-wrong': token({}, { aud: 'x' }),
  'token-exp-missing': token({}, { exp: undefined }),
  'token-not-yet-valid': token({}, { nbf: 99 }),
  'insufficient-scope': decide('GET /Condition/1', { scope: 'patient/Patient.r', ...ONE }),
  'insufficient-scope-of-context': decide('GET /Condition/1', {
    scope: 'system/*.r',
    ...ONE,
    policy: { contexts: ['patient'] },
  }),
  'insufficient-scope-for-protected': decide('PUT /Basic/1', {
    scope: 'system/*.cruds',
    policy: { protectedTypes: ['Basic'] },
  }),
  'not-the-patient': decide('GET /Patient/2', { scope: 'patient/*.rs', ...ONE }),
  'no-patient-claim': decide('GET /Patient/2', { scope: 'patient/*.rs' }),
  'no-user-claim': decide('GET /Patient/2', { scope: 'user/*.rs' }),
  'shared-type-read-only': decide('DELETE /Practitioner/1', { scope: 'patient/*.cruds', ...ONE }),
  'type-without-patient-scope': decide('GET /Observation/1', {
    scope: 'patient/Observation.rs?foo=1',
    ...ONE,
  }),
  'resource-not-covered': decide('GET /Observation/1', {
    scope: 'user/*.rs?foo=1',
    fhirUser: 'Practitioner/1',
  }),
  'policy-excludes-type': decide('GET /Condition/1', { ...CLINICIAN, policy: { userFilter: () => [] } }),
  'policy-without-patients': decide('GET /Condition/1', {
    ...CLINICIAN,
    policy: { userFilter: () => [{ panel: EMPTY }] },
  }),
  'policy-of-other-patients': decide('GET /Patient/1', {
    ...CLINICIAN,
    policy: { userFilter: () => [{ panel: OTHERS }] },
  }),
  'operation-needs-whole-type': decide('GET /ValueSet/$expand?url=x', {
    scope: 'patient/ValueSet.rs?url=y',
    ...ONE,
    policy: { operations: listGatewayOperations() },
  }),
  'operation-needs-all-data': decide('POST /$meta', {
    scope: 'system/Patient.rs',
    policy: {
      operations: listGatewayOperations([parsePassedOperation('$meta')].filter(it => it !== undefined)),
    },
  }),
  'content-not-within': write('POST /Condition', {
    ...condition(),
    subject: { reference: 'Patient/2' },
  }),
  'written-body-not-a-resource': write('POST /Condition', 1),
  'written-type-differs': write('POST /Condition', { resourceType: 'Observation' }),
  'written-id-differs': write('PUT /Condition/1', condition('2')),
  'patch-of-unknown-kind': write('PATCH /Condition/1', 1),
  'search-not-limited': rule('GET /Condition?code=1'),
  'search-of-all': rule('GET /_history'),
  'reverse-include-not-limited': rule(
    'GET /Practitioner?_revinclude=Condition:asserter',
    'patient/Condition.rs system/Practitioner.rs',
  ),
  'chain-not-limited': rule(
    'GET /Practitioner?_has:Condition:asserter:code=1',
    'patient/Condition.rs system/Practitioner.rs',
  ),
  'condition-not-limited': rule('DELETE /Condition?code=1'),
  'patch-not-checked': rule('PATCH /Condition/1'),
  'validated-not-checked': rule('GET /Condition/1/$validate'),

  'audit-event-written': () => toRefusal(auditRefusal({ kind: 'create', type: 'AuditEvent' })),
  'audit-event-in-bundle': () =>
    toRefusal(auditRefusal({ kind: 'read', type: 'AuditEvent', id: '1', params: [] })),
  'patch-unusable': () => {
    const stored = { resourceType: 'Condition' }
    const failed = failFor('patch-path-to-nothing')
    return toRefusal(checkPatch([{ op: 'remove', path: '/x' }], stored, failed, () => false))
  },

  'path-outside-base': ask('GET Patient'),
  'path-with-empty-segment': ask('GET //Patient'),
  'path-with-dots': ask('GET /Patient/..'),
  'path-with-encoded-character': ask('GET /Patient/%31'),
  'path-with-foreign-character': ask('GET /Patient/ä'),
  'id-malformed': ask(`GET /Patient/${'1'.repeat(65)}`),
  'version-id-malformed': ask(`GET /Patient/1/_history/${'1'.repeat(65)}`),
  'operation-name-malformed': ask('GET /Patient/$$'),
  'url-unknown': ask('GET /Condition/1/x'),
  'resource-type-unknown': ask('GET /Nothing'),
  'method-unknown': ask('TRACE /Patient'),
  'method-not-allowed': ask('PUT /metadata'),
  'method-overridden': ask('POST /Patient', { 'x-http-method-override': 'DELETE' }),
  'if-none-exist-unsupported': ask('PUT /Patient/1', { 'if-none-exist': 'name=x' }),
  'if-none-exist-malformed': ask('POST /Patient', { 'if-none-exist': 'Condition?code=1' }),
  'parameters-malformed': ask('GET /Patient?name=%'),
  'criteria-missing': ask('DELETE /Patient'),
  'parameters-unsupported': ask('GET /Patient/1?_cascade=delete'),
  'parameters-too-long': ask(`GET /Patient?name=${'x'.repeat(limits.SEARCH_CHARACTERS)}`),
  'parameters-too-many': ask(`GET /Patient?_id=${'1,'.repeat(limits.SEARCH_VALUES)}`),
  'search-body-not-a-form': ask('POST /Patient/_search', { 'content-type': 'application/json' }),
  'bundle-in-bundle': send(
    'POST ',
    bundle('transaction', { request: { method: 'POST', url: '' }, resource: {} }),
  ),
  'provenance-unsupported': send('DELETE Patient/1', undefined, { 'x-provenance': '{}' }),
  'provenance-malformed': send('POST Condition', condition(), { 'x-provenance': '{' }),
  'type-parameter-unknown': decide('GET /?_type=Nothing', { scope: 'patient/*.rs', ...ONE }),
  'chain-of-several-types': decide('GET /?subject.name=x', { scope: 'patient/*.rs', ...ONE }),

  'body-empty': send('POST Patient'),
  'body-malformed': send('POST Patient', '{'),
  'body-not-utf8': () => {
    const operation = { kind: 'operation', name: '$graphql', params: [], posted: true } as const
    const headers = { 'content-type': 'application/graphql' }
    const read = readBody(operation, headers, Buffer.from([0xff]), createBodyLimits())
    assert(isFailure(read) && read.reason !== 'refused')
    return read
  },
  'body-not-gzip': ({ fhir }) => sendBytes(fhir, Buffer.from('x'), { 'content-encoding': 'gzip' }),
  'body-not-a-resource': send('POST Patient', 1),
  'body-not-parameters': send('POST Patient/1/$everything', { resourceType: 'Patient' }),
  'body-of-another-type': send('POST Patient', condition()),
  'body-id-differs': send('PUT Condition/1', condition('2')),
  'body-too-large': ({ fhir }) =>
    sendBytes(fhir, gzipSync(Buffer.alloc(limits.BODY_BYTES + 1)), { 'content-encoding': 'gzip' }),
  'body-too-complex': send('POST Patient', '['.repeat(limits.JSON_DEPTH + 1)),
  'wrong-content-type': send('POST Patient', '{}', { 'content-type': 'text/plain' }),
  'wrong-content-encoding': ({ fhir }) => sendBytes(fhir, Buffer.from('x'), { 'content-encoding': 'br' }),
  'not-acceptable': send('GET Patient/1?_format=xml'),
  'invalid-resource': send('POST Patient', { resourceType: 'Patient', gender: 1 }),
  'match-id-differs': send('PUT Condition?_id=stored', condition('other')),
  'if-match-of-absent': send('PUT Condition/none', condition('none'), { 'if-match': 'W/"1"' }),
  'if-match-differs': send('PUT Condition/stored', condition('stored'), { 'if-match': 'W/"9"' }),
  'if-none-match-names-current': send('PUT Condition/stored', condition('stored'), { 'if-none-match': '*' }),
  'outside-access': ({ limited }) => limited('GET Condition/of-another'),
  absent: send('GET Condition/none'),
  gone: send('GET Condition/deleted'),
  'no-match': send('PATCH Condition?_id=none', [], PATCH),
  'no-match-of-reference': send(
    'POST ',
    bundle('transaction', {
      request: { method: 'POST', url: 'Condition' },
      resource: { resourceType: 'Condition', subject: { reference: 'Patient?_id=none' } },
    }),
  ),
  'multiple-matches': send('DELETE Condition?subject=Patient/1'),
  'unsupported-operation': send('GET Patient/1/$nothing'),

  'patch-not-operations': () => {
    const parsed = parseOperations(1)
    assert(isFailure(parsed))
    return parsed
  },
  'patch-not-an-array': patch(1),
  'patch-operations-too-many': patch(Array(limits.PATCH_OPERATIONS + 1).fill({})),
  'patch-operation-missing': patch({ resourceType: 'Parameters', parameter: [{}] }),
  'patch-path-too-long': operate(type('delete'), path('x'.repeat(limits.PATCH_PATH_CHARACTERS + 1))),
  'patch-path-unsupported': operate(type('delete'), path('Patient..')),
  'patch-part-missing': operate(type('insert'), path('Patient.name')),
  'patch-value-unreadable': operate(type('replace'), path('Patient.gender')),
  'patch-type-unknown': operate(type('x'), path('Patient.gender')),
  'patch-op-unknown': patch([{ op: 'x' }]),
  'patch-pointer-missing': patch([{ op: 'remove', path: 'x' }]),
  'patch-pointer-too-long': patch([{ op: 'remove', path: `/${'x'.repeat(limits.PATCH_PATH_CHARACTERS)}` }]),
  'patch-costs-too-much': () => {
    const patched = applyPatch({}, Array(10).fill({ op: 'add', path: '/a', value: 1 }), new Work(1))
    assert(isFailure(patched))
    return patched
  },
  'patch-shifts-too-much': patch(
    Array(limits.PATCH_OPERATIONS).fill({ op: 'move', from: '/a/1', path: '/a/0' }),
    { a: Array(90_000).fill(1) },
  ),
  'patch-value-too-deep': () => {
    let deep: unknown = 1
    for (let level = 0; level <= limits.PATCH_DEPTH; level++) deep = [deep]
    const patched = applyPatch({}, [{ op: 'add', path: '/a', value: deep }], new Work())
    assert(isFailure(patched))
    return patched
  },
  'patch-moves-into-itself': patch([{ op: 'move', from: '/a', path: '/a/b' }], { a: {} }),
  'patch-test-failed': patch([{ op: 'test', path: '/a', value: 1 }], { a: 2 }),
  'patch-container-missing': patch([{ op: 'add', path: '/a/b', value: 1 }], { a: 'x' }),
  'patch-removes-resource': patch([{ op: 'remove', path: '' }]),
  'patch-copies-too-much': patch(Array(28).fill({ op: 'copy', from: '/a', path: '/a/-' }), {
    a: ['x'.repeat(1_000)],
  }),
  'patch-target-missing': patch([{ op: 'remove', path: '/x' }]),
  'patch-without-resource': patch({ resourceType: 'Parameters', parameter: [] }, 1),
  'patch-of-another-type': operate(type('delete'), path('Condition.code')),
  'patch-path-to-nothing': operate(type('replace'), path('Patient.active'), value({ valueBoolean: true })),
  'patch-path-to-several': patch(
    {
      resourceType: 'Parameters',
      parameter: [{ name: 'operation', part: [type('delete'), path('Patient.name')] }],
    },
    { resourceType: 'Patient', name: [{}, {}] },
  ),
  'patch-element-taken': operate(type('add'), path('Patient'), named('gender'), value({ valueCode: 'male' })),
  'patch-replaces-resource': operate(type('replace'), path('Patient'), value({ valueCode: 'x' })),
  'patch-deletes-resource': operate(type('delete'), path('Patient')),
  'patch-path-not-to-list': operate(
    type('insert'),
    path('Patient'),
    place('index', 0),
    value({ valueCode: 'x' }),
  ),
  'patch-element-not-a-list': operate(
    type('insert'),
    path('Patient.gender'),
    place('index', 0),
    value({ valueCode: 'x' }),
  ),
  'patch-place-missing': operate(
    type('insert'),
    path('Patient.name'),
    place('index', 9),
    value({ valueHumanName: {} }),
  ),
  'patch-element-without-parts': operate(
    type('add'),
    path('Patient'),
    named('deceased'),
    value({ part: [{ name: 'x', valueCode: 'x' }] }),
  ),
  'patch-element-of-another-type': operate(
    type('add'),
    path('Patient'),
    named('deceased'),
    value({ valueQuantity: {} }),
  ),
  'patch-visits-too-much': patch(
    {
      resourceType: 'Parameters',
      parameter: Array(limits.PATCH_OPERATIONS).fill({
        name: 'operation',
        part: [type('delete'), path("Patient.identifier.where(value = 'none')")],
      }),
    },
    { resourceType: 'Patient', identifier: Array.from({ length: 500 }, (_, at) => ({ value: `${at}` })) },
  ),
  'patch-element-unknown': operate(
    type('add'),
    path('Patient'),
    named('nothing'),
    value({ valueString: 'x' }),
  ),
  'patch-type-without-elements': patch(
    {
      resourceType: 'Parameters',
      parameter: [
        {
          name: 'operation',
          part: [type('add'), path('Patient.name'), named('text'), value({ valueString: 'x' })],
        },
      ],
    },
    { resourceType: 'Patient', name: ['x'] },
  ),

  'missing-value-malformed': search('code:missing', 'x'),
  'value-missing': search('code', ''),
  'value-malformed': search('date', 'x'),
  'value-too-long': search('name', 'x'.repeat(limits.SEARCHED_CHARACTERS + 1), 'Patient'),
  'parameter-unknown': search('nothing', '1'),
  'modifier-unsupported': search('code:nothing', '1'),
  'chain-too-long': search('subject:Patient.link.link.link.link.name', 'x'),
  'chain-not-a-reference': search('code.name', 'x'),
  'chain-target-unknown': search('subject:Practitioner.name', 'x'),
  'has-malformed': search('_has:Observation', 'x', 'Patient'),
  'has-not-a-reference': search('_has:Observation:code:code', 'x', 'Patient'),
  'search-costs-too-much': () => {
    const clause = parseSearch('Observation', 'code', 'a,b', policy.fhirBaseUrl, new SearchSteps(new Work(1)))
    assert(isFailure(clause))
    return clause
  },
  'search-steps-too-many': search('subject.name', `${'x,'.repeat(999)}x`),
  'include-malformed': send('GET Condition?_include=x'),
  'include-target-unknown': send('GET Condition?_include=Condition:subject:x'),
  'include-not-a-reference': send('GET Condition?_include=Condition:code'),
  'include-rules-too-many': send(`GET Patient?${'_revinclude=*&'.repeat(20)}`),
  'count-malformed': send('GET Condition?_count=x'),
  'sort-unknown': send('GET Condition?_sort=x'),
  'choice-unknown': send('GET Condition?_summary=x'),
  'history-parameter-unknown': send('GET Condition/stored/_history?x=1'),
  'since-malformed': send('GET Condition/stored/_history?_since=x'),
  'at-malformed': send('GET Condition/stored/_history?_at=x'),
  'history-sorted': send('GET Condition/stored/_history?_sort=x'),
  'page-link-changed': send('GET Condition?_page=x'),
  'types-malformed': send('GET Patient/1/$everything?_type=x'),
  'care-dates-malformed': send('GET Patient/1/$everything?start=x'),
  'last-count-malformed': send('GET Observation/$lastn?max=x'),
  'everything-parameter-unknown': send('GET Patient/1/$everything?x=1'),
  'operation-parameter-unknown': send('GET Observation/$lastn?_sort=date'),
  'validate-mode-unknown': send('POST Patient/$validate?mode=x', { resourceType: 'Patient' }),

  'bundle-missing': send('POST ', { resourceType: 'Patient' }),
  'bundle-type-unsupported': send('POST ', bundle('collection')),
  'bundle-entry-not-a-list': send('POST ', { resourceType: 'Bundle', type: 'batch', entry: 1 }),
  'entry-without-request': send('POST ', bundle('batch', {})),
  'entry-request-incomplete': send('POST ', bundle('batch', { request: { method: 'GET' } })),
  'entry-full-url-unusable': () => {
    const entry = {
      fullUrl: 'x',
      interaction: { kind: 'create', type: 'Patient' },
      body: {},
      preconditions: {},
    } as const
    const failure = checkFullUrls([entry], policy.fhirBaseUrl)
    assert(failure && failure.reason === 'entry-full-url-unusable')
    return failure
  },
  'entries-write-the-same': send('POST ', bundle('transaction', put('a'), put('a'))),
  'bundle-entries-too-many': send(
    'POST ',
    bundle('transaction', ...Array(limits.TRANSACTION_ENTRIES + 1).fill(get)),
  ),
  'bundle-patches-too-long': send(
    'POST ',
    bundle('batch', {
      request: { method: 'PATCH', url: 'Condition/1' },
      resource: {
        resourceType: 'Binary',
        contentType: 'application/json-patch+json',
        data: 'A'.repeat(limits.BUNDLE_PATCH_CHARACTERS + 1),
      },
    }),
  ),
  'query-values-too-many': send(`GET Observation?code=${'1,'.repeat(400)}1`),
  'sort-keys-too-many': send(`GET Observation?_sort=${'date,'.repeat(40)}date`),
  'includes-too-many': send(`GET Observation?${'_include=Observation:subject&'.repeat(201)}`),
  'work-of-bundle': exhaust('entry'),
  'work-of-parameters': exhaust('parameter'),
  'work-of-values': exhaust('value'),
  'work-of-patches': exhaust('element'),
  'work-of-references': exhaust('reference'),
  'work-of-rows': exhaust('row'),
  'work-of-statements': exhaust('statement'),
  'work-of-requests': exhaust('request'),
  'work-of-characters': exhaust('character'),
}

function toRefusal(failure: FhirProblem | undefined): Refusal {
  assert(failure && failure.reason !== 'refused')
  return failure
}

async function sendBytes(
  fhir: Fhir,
  payload: Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<Reply> {
  const reply = await fhir.app.inject({
    method: 'POST',
    url: '/fhir/Patient',
    payload,
    headers: { 'content-type': 'application/fhir+json', ...headers },
  })
  return { status: reply.statusCode, headers: reply.headers, text: reply.body, body: reply.json() }
}

describe('the reasons of the FHIR server', () => {
  it('happen here, or in a test file that exists', () => {
    for (const file of new Set(Object.values(ELSEWHERE))) assert(existsSync(file), file)
  })

  let world: World
  let servers: readonly Fhir[]
  before(async () => {
    const fhir = await startFhir()
    const guard = createAuthenticator({ all: fullAccess, one: patientAccess('1') })
    const guarded = await startFhir({ guard })
    servers = [fhir, guarded]
    await fhir('PUT Patient/1', { resourceType: 'Patient', id: '1' })
    for (const id of ['stored', 'another', 'deleted']) await fhir(`PUT Condition/${id}`, condition(id))
    await fhir('DELETE Condition/deleted')
    const other = { ...condition('of-another'), subject: { reference: 'Patient/2' } }
    await guarded.as('all')('PUT Condition/of-another', other)
    world = { fhir, limited: guarded.as('one') }
  })
  after(async () => {
    for (const server of servers) await server.close()
  })

  for (const [reason, happen] of Object.entries(WAYS))
    it(`${reason} happens, and is explained (ACTIVITY-4)`, async () => {
      const outcome = await happen(world)
      const { facts } =
        'text' in outcome ? readFacts(reason as FhirReason, outcome) : checkRecord(reason, outcome)
      const explained = explainReason({ reason, facts })
      assert(explained)
      assert.doesNotMatch(`${explained.cause} ${explained.action}`, /[{}…]|(?<!“)undefined/)
    })
})

/** The facts that the response to a failed request names. Its status, code and text are those of the reason. */
function readFacts(reason: FhirReason, { status, body }: Reply) {
  const words = FHIR_REASONS[reason]
  assert.equal(status, words.status)
  if (reason === 'invalid-resource') return { facts: {} }
  const [issue] = body.issue ?? []
  assert.equal(issue?.code, words.code)
  const pattern = RegExp.escape(words.sentence).replace(/\\\{(\w+)\\\}/g, '(?<$1>.+)')
  const found = new RegExp(`^${pattern}$`, 's').exec(issue?.details.text ?? '')
  assert(found, issue?.details.text)
  return { facts: { ...found.groups } }
}

/** A refusal has the status of its reason, and its audit record names the reason and its facts. */
function checkRecord(reason: string, refusal: Refusal) {
  assert.equal(refusal.reason, reason)
  const refused = refuse(refusal)
  const { facts } = refused
  const interaction = { kind: 'read', type: 'Patient', id: '1', params: [] } as const
  const problem = { reason: 'refused', refused }
  const request = { at: 1, method: 'GET', address: 'Patient/1', interaction, status: refused.status, problem }
  const [{ details }] = createRecords(request, policy.fhirBaseUrl)
  assert.deepEqual(details, { reason, ...(facts && { facts }) })
  return { facts }
}
