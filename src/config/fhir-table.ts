import { defineDerived, defineFixed, defineOpen, none } from './setting-row.ts'
import * as types from './setting-types.ts'

export const fhirTable = {
  'fhir.samplePatients': defineFixed({
    name: 'smart.fhir.sample-patients',
    env: 'SMART_SAMPLE_PATIENTS',
    type: types.wholeNumber(0, 100_000),
    initial: '60',
    about:
      'Number of sample patients that the first start of the embedded FHIR server creates; `0` for none.',
  }),
  'fhir.policyFile': defineOpen({
    name: 'smart.fhir.policy-file',
    env: 'SMART_POLICY_FILE',
    type: types.path,
    otherwise: 'none: every clinician may see every patient',
    about: '[Policy file](policy.md): which clinicians may see which patients.',
  }),
  'fhir.searchPermission': defineFixed({
    name: 'smart.fhir.search-letter',
    env: 'SMART_SEARCH_LETTER',
    type: types.oneOf('r', 's'),
    initial: 'r',
    about: 'Permission that a search needs: `r`, or `s` as in SMART.',
  }),
  'fhir.scopeContexts': defineFixed({
    name: 'smart.fhir.scope-contexts',
    env: 'SMART_SCOPE_CONTEXTS',
    type: types.contexts,
    initial: 'patient,user,system',
    about: "Scope contexts that clients may use. Does not limit the portal's own token.",
  }),
  'fhir.versionAccess': defineFixed({
    name: 'smart.fhir.version-access',
    type: types.oneOf('current', 'version'),
    initial: 'current',
    about:
      'How access to an old version of a resource is decided. `current`: the version and the current version must both be within the grant; `version`: only the version itself.',
  }),
  'fhir.protectedTypes': defineDerived({
    name: 'smart.fhir.protected-types',
    type: types.resourceTypes,
    otherwise: 'none',
    about:
      'Further types that only a `system/` scope that names them may write, like `SearchParameter` and the other types that change how a server works.',
    derive: none,
  }),
  'fhir.relationContexts': defineFixed({
    name: 'smart.fhir.relation-contexts',
    type: types.contexts,
    initial: 'system',
    about:
      'Scope contexts in which a caller with limited access may write `RelatedPerson`, and `CareTeam` under a policy by care team: these resources decide who has access to a patient.',
  }),
  'fhir.bodyLimitMegabytes': defineOpen({
    name: 'smart.fhir.body-limit-mb',
    type: types.wholeNumber(1, 16),
    otherwise: '`5`; gateway: `16`',
    about:
      'Largest body of a FHIR request, in megabytes. The embedded FHIR server accepts at most `8` ([limits](limits.md#fhir-servers)).',
  }),
  'fhir.binaryLimitMegabytes': defineOpen({
    name: 'smart.fhir.binary-limit-mb',
    type: types.wholeNumber(1, 100),
    otherwise: 'the largest body',
    about:
      'Largest content of a Binary that is sent as it is, and not as JSON, in megabytes. The gateway streams contents that are larger than a body. The embedded FHIR server, which does not, accepts at most `8`.',
  }),
  'fhir.bundleEntries': defineFixed({
    name: 'smart.fhir.bundle-entries',
    type: types.wholeNumber(1, 5_000),
    initial: '1000',
    about:
      'Largest number of entries of a transaction; a batch may have twice as many. The embedded FHIR server, which processes a transaction without yielding, accepts at most `1000`.',
  }),
  'fhir.exportHours': defineFixed({
    name: 'smart.fhir.export-hours',
    type: types.wholeNumber(1, 168),
    initial: '24',
    about: 'How long the files of a [bulk export](how-to/export-data.md) can be downloaded, in hours.',
  }),
  'fhir.exportFileResources': defineFixed({
    name: 'smart.fhir.export-file-resources',
    type: types.wholeNumber(1, 10_000_000),
    initial: '100000',
    about: 'Largest number of lines of a file of a bulk export.',
  }),
  'fhir.smartConfigurationUrl': defineOpen({
    name: 'smart.fhir.smart-configuration-url',
    type: types.pageAddress,
    otherwise: "none: Sallyport's own",
    about:
      "URL of another identity provider's SMART configuration, which the FHIR server then serves ([gateway](gateway.md#another-identity-provider)).",
  }),
  'fhir.trustedIssuersFile': defineOpen({
    name: 'smart.fhir.trusted-issuers-file',
    env: 'SMART_TRUSTED_ISSUERS_FILE',
    type: types.path,
    otherwise: 'none: only the auth server',
    about:
      'YAML or JSON file with other issuers whose access tokens are accepted ([gateway](gateway.md#another-identity-provider)).',
  }),
}

export const upstreamTable = {
  'fhir.upstreamUrl': defineOpen({
    name: 'smart.fhir.upstream-url',
    type: types.baseAddress,
    otherwise: 'none: the embedded FHIR server',
    about: 'FHIR base URL of the upstream. If it is set, the FHIR server is the [gateway](gateway.md).',
  }),
  'fhir.upstream.aliases': defineDerived({
    name: 'smart.fhir.upstream-aliases',
    type: types.baseAddresses,
    otherwise: 'none',
    about: 'Other base URLs that the upstream uses in links and references.',
    derive: none,
  }),
  'fhir.upstream.narrowing': defineFixed({
    name: 'smart.fhir.upstream-narrowing',
    type: types.oneOf('auto', 'compartment', 'parameter'),
    initial: 'auto',
    about:
      'How the gateway limits a search to a patient: by compartment path, by search parameter, or as the CapabilityStatement suggests.',
  }),
  'fhir.upstream.profile': defineFixed({
    name: 'smart.fhir.upstream-profile',
    type: types.oneOf('auto', 'hapi', 'if-none-match', 'post-only', 'strict'),
    initial: 'auto',
    about:
      'How the upstream behaves where FHIR servers differ. `auto` is `hapi` for a server that shows that it is HAPI, and otherwise `post-only`: a PUT may overwrite, so that limited callers create with POST. `if-none-match` relies on `If-None-Match: *` alone, `strict` on FHIR R4; `check upstream --write` recommends one ([gateway](gateway.md#how-upstreams-differ)).',
  }),
  'fhir.upstream.searchCache': defineFixed({
    name: 'smart.fhir.upstream-search-cache',
    type: types.oneOf('bypass', 'allow'),
    initial: 'bypass',
    about:
      "Whether the upstream may answer an app's search from earlier results: `bypass` sends `Cache-Control: no-cache`. Searches by which the gateway decides, and those by a reference to another server, always bypass the cache.",
  }),
  'fhir.upstream.operations': defineDerived({
    name: 'smart.fhir.upstream-operations',
    type: types.fhirOperations,
    otherwise: 'none',
    about:
      'Upstream operations that callers with access to all data may call, for example `$meta` or `Patient/$match`. With `POST` the caller also needs permission to write all data, unless the name ends in `:read` ([gateway](gateway.md#operations)).',
    derive: none,
  }),
  'fhir.upstream.export': defineFixed({
    name: 'smart.fhir.upstream-export',
    type: types.oneOf('search', 'relay', 'off'),
    initial: 'search',
    about:
      "How the gateway exports bulk data: `search` makes the files from the upstream's searches, `relay` passes `$export` on for backend services that may see all data, `off` does not export ([gateway](gateway.md#bulk-export)).",
  }),
  'fhir.upstream.searchParameters': defineDerived({
    name: 'smart.fhir.upstream-search-parameters',
    type: types.searchParameters,
    otherwise: 'none',
    about:
      'Search parameters of your site that limited callers may use, for example `mrn` or `Patient.mrn`. List only parameters that depend on nothing but the resource itself ([gateway](gateway.md#search-parameters-that-only-the-upstream-can-evaluate)).',
    derive: none,
  }),
  'fhir.upstream.timeoutSeconds': defineFixed({
    name: 'smart.fhir.upstream-timeout-seconds',
    type: types.wholeNumber(1, 300),
    initial: '10',
    about: 'How long the gateway waits for the upstream before it answers 504.',
  }),
  'fhir.upstream.responseLimitMegabytes': defineFixed({
    name: 'smart.fhir.upstream-response-limit-mb',
    type: types.wholeNumber(1, 1024),
    initial: '16',
    about:
      'Largest upstream response that the gateway keeps in memory to check it, in megabytes. Of a larger one it checks everything but long strings, such as the data of attachments. On a page these are left out; a resource that is read by its id is streamed.',
  }),
  'fhir.upstream.connections': defineFixed({
    name: 'smart.fhir.upstream-connections',
    type: types.wholeNumber(1, 10_000),
    initial: '64',
    about: 'Maximum number of connections to the upstream, of all workers together.',
  }),
  'fhir.upstream.auth': defineFixed({
    name: 'smart.fhir.upstream-auth',
    type: types.oneOf('none', 'bearer', 'basic', 'client-credentials'),
    initial: 'none',
    about: "How the gateway authenticates to the upstream. It never sends an app's token.",
  }),
  'fhir.upstream.token': defineOpen({
    name: 'smart.fhir.upstream-token',
    type: types.headerText,
    otherwise: 'none',
    about: 'Token for `upstream-auth` `bearer`.',
    secret: true,
  }),
  'fhir.upstream.username': defineOpen({
    name: 'smart.fhir.upstream-username',
    type: types.headerText,
    otherwise: 'none',
    about: 'Username for `upstream-auth` `basic`.',
  }),
  'fhir.upstream.password': defineOpen({
    name: 'smart.fhir.upstream-password',
    type: types.headerText,
    otherwise: 'none',
    about: 'Password for `upstream-auth` `basic`.',
    secret: true,
  }),
  'fhir.upstream.tokenUrl': defineOpen({
    name: 'smart.fhir.upstream-token-url',
    type: types.pageAddress,
    otherwise: 'none',
    about: 'Token endpoint for `upstream-auth` `client-credentials`.',
  }),
  'fhir.upstream.clientId': defineOpen({
    name: 'smart.fhir.upstream-client-id',
    type: types.clientId,
    otherwise: 'none',
    about: 'Client id for `upstream-auth` `client-credentials`.',
  }),
  'fhir.upstream.clientSecret': defineOpen({
    name: 'smart.fhir.upstream-client-secret',
    type: types.headerText,
    otherwise: 'none',
    about: 'Client secret for `upstream-auth` `client-credentials`.',
    secret: true,
  }),
  'fhir.upstream.scope': defineOpen({
    name: 'smart.fhir.upstream-scope',
    type: types.headerText,
    otherwise: 'none',
    about: 'Scope for `upstream-auth` `client-credentials`.',
  }),
  'fhir.upstream.tlsCert': defineOpen({
    name: 'smart.fhir.upstream-tls-cert',
    type: types.path,
    otherwise: 'none',
    about: 'PEM file with the client certificate of the gateway (mTLS).',
  }),
  'fhir.upstream.tlsKey': defineOpen({
    name: 'smart.fhir.upstream-tls-key',
    type: types.path,
    otherwise: 'none',
    about: 'PEM file with the private key of `upstream-tls-cert`.',
  }),
  'fhir.upstream.tlsCa': defineOpen({
    name: 'smart.fhir.upstream-tls-ca',
    type: types.path,
    otherwise: "Node's list",
    about: 'PEM file with the certificate authorities that the gateway trusts for the upstream.',
  }),
}
