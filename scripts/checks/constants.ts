import type { Sources } from './modules.ts'

const TIMES = 'src/core/time.ts'

/** Tests may have their own numbers, so that they do not repeat a fault of the code. */
const isChecked = (file: string) => file.startsWith('src/') && !file.endsWith('.test.ts') && file !== TIMES

/** Durations written as numbers, and constants of `core/time.ts` defined again. */
export function findConstantFaults(sources: Sources): readonly string[] {
  const names = [...(sources.get(TIMES) ?? '').matchAll(/^export const (\w+)/gm)].map(([, name]) => name)
  const fault = new RegExp(`\\b(?:3_600_000|86_400_000|const (?:${names.join('|')}) =)`, 'g')
  return [...sources]
    .filter(([file]) => isChecked(file))
    .flatMap(([file, text]) =>
      [...text.matchAll(fault)].map(([found]) => `${file}: ${found}: use ${names.join(', ')} of ${TIMES}`),
    )
}
