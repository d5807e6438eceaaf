import { defineFixed, open } from './setting-row.ts'
import * as types from './setting-types.ts'

/** The settings of the FHIR server, embedded or gateway. */
export const fhirTable = {
  fhirSamplePatients: defineFixed({
    name: 'smart.fhir.sample-patients',
    env: 'SMART_SAMPLE_PATIENTS',
    type: types.wholeNumber(0, 100_000),
    initial: '60',
    about:
      'Number of sample patients that the first start of the embedded FHIR server creates; `0` for none.',
    of: settings => settings.fhir.samplePatients,
  }),
  fhirPolicyFile: open({
    name: 'smart.fhir.policy-file',
    env: 'SMART_POLICY_FILE',
    type: types.path,
    otherwise: 'none: every clinician may see every patient',
    about: '[Policy file](policy.md): which clinicians may see which patients.',
    of: settings => settings.fhir.policyFile,
  }),
  fhirSearchLetter: defineFixed({
    name: 'smart.fhir.search-letter',
    env: 'SMART_SEARCH_LETTER',
    type: types.oneOf('r', 's'),
    initial: 'r',
    about: 'Permission that a search needs: `r`, or `s` as in SMART.',
    of: settings => settings.fhir.searchPermission,
  }),
  fhirScopeContexts: defineFixed({
    name: 'smart.fhir.scope-contexts',
    env: 'SMART_SCOPE_CONTEXTS',
    type: types.contexts,
    initial: 'patient,user,system',
    about: "Scope contexts that clients may use. Does not limit the portal's own token.",
    of: settings => settings.fhir.scopeContexts,
  }),
  fhirVersionAccess: defineFixed({
    name: 'smart.fhir.version-access',
    env: 'SMART_FHIR_VERSION_ACCESS',
    type: types.oneOf('current', 'version'),
    initial: 'current',
    about:
      'How access to an old version of a resource is decided. `current`: the version and the current version must both be within the grant; `version`: only the version itself.',
    of: settings => settings.fhir.versionAccess,
  }),
  fhirSmartConfigurationUrl: open({
    name: 'smart.fhir.smart-configuration-url',
    env: 'SMART_FHIR_SMART_CONFIGURATION_URL',
    type: types.pageAddress,
    otherwise: "none: Sallyport's own",
    about:
      "URL of another identity provider's SMART configuration, which the FHIR server then serves ([gateway](gateway.md#another-identity-provider)).",
    of: settings => settings.fhir.smartConfigurationUrl,
  }),
  fhirTrustedIssuersFile: open({
    name: 'smart.fhir.trusted-issuers-file',
    env: 'SMART_TRUSTED_ISSUERS_FILE',
    type: types.path,
    otherwise: 'none: only the auth server',
    about:
      'YAML or JSON file with other issuers whose access tokens are accepted ([gateway](gateway.md#another-identity-provider)).',
    of: settings => settings.fhir.trustedIssuersFile,
  }),
}
