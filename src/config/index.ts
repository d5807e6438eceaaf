/**
 * The settings (SETTING-1): one table of names, variables, defaults and types for the reader, the `settings` command and
 * the reference page. The only module that reads the environment; it starts nothing.
 */
export { type Configuration, readConfiguration, readSettings } from './configuration.ts'
export { createHostCheck, isLoopbackHost } from './derive.ts'
export { type EffectiveSetting, listEffectiveSettings } from './effective.ts'
export { settingsReference } from './reference.ts'
export { ensureSecret } from './secret-file.ts'
export type { LogLevel, Settings } from './settings.ts'
export { SettingsError } from './settings-error.ts'
