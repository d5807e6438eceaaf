/** A setting that is missing, unknown or wrong. The message is one line that names it. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError'
}
