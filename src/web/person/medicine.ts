import { NOT_RECORDED } from './date.ts'

/**
 * Units in a form that cannot be misread: `mcg` can be read as `mg` and `U` as a zero, so both are written out. RxNorm's
 * upper case becomes the usual spelling.
 */
const UNITS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/(?<=\d\s?|\/)(?:mcg|µg|μg|ug)\b/gi, 'microgram'],
  [/(?<=\d\s?)(?:\[iU\]|iu|u|unt)(?=\W|$)/gi, 'units'],
  [/(?<=\/\s?)(?:unt|iu)\b/gi, 'units'],
  [/(?<=\d\s?|\/)mg\b/gi, 'mg'],
  [/(?<=\d\s?|\/)ml\b/gi, 'mL'],
  [/(?<=\d\s?|\/)meq\b/gi, 'mEq'],
  [/(?<=\d\s?|\/)mmol\b/gi, 'mmol'],
  [/(?<=\d\s?|\/)g\b/gi, 'g'],
  [/(?<=\/)actuat\b/gi, 'dose'],
  [/(?<=\d\s?|\/)hr\b/gi, 'hour'],
]

/** `5.0` can be misread as 50, and `.5` as 5. */
function writeSafeNumbers(text: string): string {
  return text
    .replace(/(?<![\d.])\.(\d)/g, '0.$1')
    .replace(/(\d)\.(\d*?)0+(?!\d)/g, (_, whole: string, rest: string) =>
      rest === '' ? whole : `${whole}.${rest}`,
    )
}

/** Writes strengths and doses without the abbreviations and zeros that lead to tenfold errors. */
export function formatDose(text: string): string {
  const spaced = text.replace(/(\d)(mcg|µg|μg|ug|mg|ml|g|iu|units?)\b/gi, '$1 $2')
  return UNITS.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), writeSafeNumbers(spaced))
}

/** Formats name, strength and form: `Levothyroxine 75 microgram tablet`. */
export function formatMedicine(name: string | undefined): string {
  const text = formatDose((name ?? '').trim().replace(/\s+/g, ' '))
  return text === '' ? NOT_RECORDED : `${text[0]?.toUpperCase()}${text.slice(1)}`
}
