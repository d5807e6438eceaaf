import type { Settings } from '../../config/index.ts'

/** `config` has already turned the settings of a single provider and a single service into lists. */
export type AuthSettings = Omit<Settings, 'login' | 'cds'> & {
  readonly login: Omit<Settings['login'], 'single'>
  readonly cds: Omit<Settings['cds'], 'single'>
}
