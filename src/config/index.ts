/**
 * The settings (SETTING-1): one table of names, variables, defaults and types for the reader, the `settings` command and
 * the reference page. The only module that reads the environment; it starts nothing.
 */
export type { CdsService } from './cds-services.ts'
export { type Configuration, readConfiguration, readSettings } from './configuration.ts'
export { createHostCheck, isLoopbackHost } from './derive.ts'
export { type EffectiveSetting, listChangedSettings, listEffectiveSettings } from './effective.ts'
export {
  type ClaimRule,
  type FhirUserRule,
  getProviderIssuer,
  type LdapProvider,
  type LoginProvider,
  type OidcProvider,
} from './login-providers.ts'
export { formatSettingsFile, overrideSettings, type SettingTexts } from './override-settings.ts'
export { parsePolicyText } from './policy-text.ts'
export { settingsReference } from './reference.ts'
export { ensureSecret } from './secret-file.ts'
export { LOG_LEVELS, type LogLevel } from './setting-types.ts'
export type { Settings } from './settings.ts'
export { SettingsError } from './settings-error.ts'
