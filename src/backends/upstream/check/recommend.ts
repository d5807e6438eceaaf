import type { Finding } from './probe.ts'

export interface Recommendation {
  readonly setting: string
  readonly inEffect: string
  readonly recommended: string
  /** Why the value in effect is unsafe. */
  readonly unsafe?: string
}

/** The settings in effect, by name. */
export type Settings = Readonly<
  Record<'upstream-narrowing' | 'upstream-profile' | 'upstream-search-cache', string>
>

export function recommendSettings(
  software: string,
  findings: readonly Finding[],
  settings: Settings,
): readonly Recommendation[] {
  const isLevel = (level: Finding['level'], ...checks: readonly string[]) =>
    findings.some(it => checks.includes(it.check) && it.level === level)
  return [
    {
      setting: 'smart.fhir.upstream-profile',
      inEffect: settings['upstream-profile'],
      recommended: chooseProfile(software, isLevel),
      ...findUnsafeProfile(software, settings['upstream-profile'], isLevel),
    },
    {
      setting: 'smart.fhir.upstream-narrowing',
      inEffect: settings['upstream-narrowing'],
      recommended: isLevel('handled', 'compartment searches') ? 'parameter' : 'auto',
      ...(settings['upstream-narrowing'] === 'compartment' &&
        isLevel('handled', 'compartment searches') && { unsafe: 'limited searches fail' }),
    },
    {
      setting: 'smart.fhir.upstream-search-cache',
      inEffect: settings['upstream-search-cache'],
      recommended: 'bypass',
    },
  ]
}

type IsLevel = (level: Finding['level'], ...checks: readonly string[]) => boolean

/** What the profile `strict` relies on. */
const STRICT_CHECKS = [
  'search results',
  'If-None-Match: * on PUT',
  'If-Match on DELETE',
  'own absolute URL in a search',
  'dates by year and month',
  'two lower bounds of a date',
  'history after a delete',
]
const CREATE_ONLY = 'If-None-Match: * on PUT'
const VERSION_ZERO = 'create only by If-Match: W/"0"'

function chooseProfile(software: string, isLevel: IsLevel): string {
  const onlyZero = isLevel('handled', CREATE_ONLY) && isLevel('ok', VERSION_ZERO)
  if (/\bHAPI\b/i.test(software) || onlyZero) return 'hapi'
  if (isLevel('handled', CREATE_ONLY)) return 'post-only'
  return isLevel('handled', ...STRICT_CHECKS) || isLevel('unknown', ...STRICT_CHECKS) ? 'auto' : 'strict'
}

function findUnsafeProfile(
  software: string,
  profile: string,
  isLevel: IsLevel,
): { readonly unsafe?: string } {
  const assumesHapi = profile === 'hapi' || (profile === 'auto' && /\bHAPI\b/i.test(software))
  if (profile === 'strict' && isLevel('handled', ...STRICT_CHECKS))
    return { unsafe: 'the upstream differs from R4' }
  if (profile === 'post-only') return {}
  if (isLevel('handled', assumesHapi ? VERSION_ZERO : CREATE_ONLY))
    return { unsafe: 'a PUT can overwrite a resource that another client creates at the same time' }
  return {}
}
