import { findJsonExcess } from '../../fhir/index.ts'
import { LIMITS } from '../limits.ts'
import type { Parameters } from '../parameters.ts'
import { type ExtraContext, isShortText, readFhirContext } from './extra-context.ts'

/** "More options" of the launch form. */
export interface LaunchOptions {
  /** Undefined: the setting decides. */
  readonly needPatientBanner: boolean | undefined
  readonly extraContext: ExtraContext
}

/** Reads the options of a form, or says what is wrong with them. */
export function readOptions(form: Parameters): LaunchOptions | string {
  const banner = form.get('needPatientBanner')
  if (banner !== undefined && banner !== 'true' && banner !== 'false')
    return 'needPatientBanner must be true or false'
  const [intent, tenant] = [form.get('intent')?.trim() || undefined, form.get('tenant')?.trim() || undefined]
  if (intent !== undefined && !isShortText(intent))
    return `The intent is longer than ${LIMITS.contextTextCharacters} characters`
  if (tenant !== undefined && !isShortText(tenant))
    return `The tenant is longer than ${LIMITS.contextTextCharacters} characters`
  const fhirContext = readFhirContext(readItems(form.get('fhirContext') ?? ''))
  if (typeof fhirContext === 'string') return fhirContext
  return {
    needPatientBanner: banner === undefined ? undefined : banner === 'true',
    extraContext: {
      ...(intent === undefined ? {} : { intent }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(fhirContext.length === 0 ? {} : { fhirContext }),
    },
  }
}

/** One reference per line, or the JSON array itself, for roles, canonicals and identifiers. */
function readItems(text: string): unknown {
  if (text.trimStart().startsWith('[')) return parseJson(text)
  const lines = text.split(/[\r\n]+/).map(line => line.trim())
  return lines.filter(line => line !== '').map(reference => ({ reference }))
}

function parseJson(text: string): unknown {
  try {
    return findJsonExcess(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
