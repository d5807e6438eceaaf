import { type Html, html } from '../../../web/ui/index.ts'

/** The parts of JavaScript, Python and HTML that have a colour. */
const PARTS =
  /(?<comment>(?:\/\/|#).*)|(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<keyword>\b(?:async|await|class|const|def|elif|else|except|for|from|function|if|import|new|raise|return|throw|try|catch|with)\b)/g

/** Colours a sample. Its text stays as it is, for the buttons that copy it. */
export function highlight(code: string): Html {
  const parts: Html[] = []
  let end = 0
  for (const { index, 0: text, groups = {} } of code.matchAll(PARTS)) {
    const [kind] = Object.keys(groups).filter(name => groups[name] !== undefined)
    parts.push(html`${code.slice(end, index)}<span class="code--${kind}">${text}</span>`)
    end = index + text.length
  }
  return html`${parts}${code.slice(end)}`
}
