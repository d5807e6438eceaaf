/**
 * The settings (SETTING-1): one table of names, variables, defaults and types for the reader, the `settings` command and
 * the reference page. The only module that reads the environment; it starts nothing.
 */
export { makePalette } from './brand-colours.ts'
export type { CdsService } from './cds-services.ts'
export {
  type Configuration,
  type EffectiveSetting,
  formatSettingsFile,
  listChangedSettings,
  listEffectiveSettings,
  overrideSettings,
  readConfiguration,
  readSettings,
  type SettingTexts,
} from './configuration.ts'
export { createHostCheck, isLoopbackHost } from './derive.ts'
export {
  FEATURES,
  FOR_TESTS,
  findDeveloperToolsProblem,
} from './developer-tools.ts'
export { type LogoFile, readLogo } from './logo-file.ts'
export { parsePolicyText } from './policy-text.ts'
export { type ClaimRule, type FhirUserRule, PROVIDER_KINDS } from './providers/fields.ts'
export type { LdapProvider } from './providers/ldap.ts'
export type { OidcProvider } from './providers/oidc.ts'
export {
  describeProvider,
  getProviderIssuer,
  hasForm,
  isRedirecting,
  type LoginProvider,
} from './providers/providers.ts'
export type { ProviderTraits } from './providers/traits.ts'
export { getMcpUrl, getResourceMetadataUrl, MCP_SCOPES, RESOURCE_METADATA_PATH } from './resources.ts'
export { ensureSecret } from './secret-file.ts'
export { findSecurityWarnings } from './security-warnings.ts'
export { LOG_LEVELS, type LogLevel } from './setting-types.ts'
export { SettingsError } from './settings-error.ts'
export type { Settings } from './settings-tree.ts'
