import { findOwn, HOW } from '../../core/index.ts'
import { type Command, failMisuse, type NamedCommand } from '../command.ts'
import { readOptions } from '../usage.ts'

type ListCommands = () => Promise<readonly NamedCommand[]>

export function defineCompletion(listCommands: ListCommands): {
  readonly commands: Readonly<Record<string, Command>>
} {
  const completion: Command = {
    usage: `
Usage: ${HOW} completion <bash|zsh|fish>

Prints a script that completes commands and options of \`sallyport\` with Tab.
Load it where your shell starts:

  bash   echo 'eval "$(sallyport completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(sallyport completion zsh)"' >> ~/.zshrc
  fish   sallyport completion fish > ~/.config/fish/completions/sallyport.fish`,
    positionals: { min: 1, max: 1 },
    async run({ positionals: [shell = ''], help }, io) {
      const format = findOwn(SHELLS, shell)
      if (!format) throw failMisuse(`Unknown shell ${shell}: see ${help}`)
      io.stdout.write(format(await listWords(await listCommands())))
      return 0
    },
  }
  return { commands: { completion } }
}

/** The words that may follow the beginning of a command line. */
interface Words {
  /** Commands and groups of commands: '', `client`, `client add`. */
  readonly after: string
  readonly words: readonly { readonly word: string; readonly about: string }[]
}

async function listWords(commands: readonly NamedCommand[]): Promise<readonly Words[]> {
  const beginnings = new Map<string, Map<string, string>>()
  const open = (after: string) => {
    const words = beginnings.get(after) ?? new Map<string, string>()
    beginnings.set(after, words)
    return words
  }
  for (const { name, summary, usage, listValues } of commands) {
    const parts = name.split(' ')
    parts.forEach((word, index) => {
      const words = open(parts.slice(0, index).join(' '))
      if (index === parts.length - 1) words.set(word, summary)
      else if (!words.has(word)) words.set(word, `Commands for ${word}`)
    })
    for (const option of [...Object.keys(readOptions(usage)), 'help']) open(name).set(`--${option}`, '')
    for (const [option, values] of Object.entries((await listValues?.()) ?? {}))
      for (const value of values) open(`${name} --${option}`).set(value, '')
  }
  return [...beginnings]
    .map(([after, words]) => ({ after, words: [...words].map(([word, about]) => ({ word, about })) }))
    .sort((a, b) => b.after.length - a.after.length)
}

function formatBash(beginnings: readonly Words[]): string {
  const cases = formatCases(beginnings, words => `words='${words.map(({ word }) => word).join(' ')}'`)
  // Bash takes the parts of a value with colons for words.
  return `_sallyport() {
  local typed=" \${COMP_WORDS[*]:1:COMP_CWORD}" current words=''
  typed=\${typed// :/:}
  typed=\${typed//: /:}
  current=\${typed##* }
  typed=\${typed% *}
  case "\${typed# }" in
${cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ $current == *:* ]] && COMPREPLY=("\${COMPREPLY[@]#"\${current%:*}:"}")
  return 0
}
complete -o default -F _sallyport sallyport
`
}

function formatZsh(beginnings: readonly Words[]): string {
  const describe = ({ word, about }: Words['words'][number]) =>
    quote(
      [word, about]
        .filter(part => part !== '')
        .map(part => part.replaceAll(':', '\\:'))
        .join(':'),
    )
  const cases = formatCases(beginnings, words => `found=(${words.map(describe).join(' ')})`)
  return `#compdef sallyport
_sallyport() {
  local -a found
  case "\${words[2,CURRENT-1]}" in
${cases}
  esac
  _describe command found || _files
}
compdef _sallyport sallyport
`
}

/** The longer beginnings come first. Options may stand between a command and the word to complete. */
function formatCases(beginnings: readonly Words[], set: (words: Words['words']) => string): string {
  return beginnings.map(({ after, words }) => `    ${formatPattern(after)}) ${set(words)} ;;`).join('\n')
}

function formatPattern(after: string): string {
  if (after === '') return "''"
  const [command = '', option] = after.split(' --')
  return option === undefined ? `'${after}'|'${after} '*` : `'${after}'|'${command} '*' --${option}'`
}

function formatFish(beginnings: readonly Words[]): string {
  const lines = beginnings.flatMap(({ after, words }) => {
    const [command = '', option] = after.split(' --')
    if (option !== undefined)
      return [
        `complete -c sallyport -n "__sallyport_after ${quote(command)}" -l ${option} -x -a ${quote(words.map(({ word }) => word).join(' '))}`,
      ]
    return words.map(({ word, about }) => {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${word}`
      return `complete -c sallyport -n "__sallyport_after ${quote(after)}" ${what}${about === '' ? '' : ` -d ${quote(about)}`}`
    })
  })
  return `function __sallyport_after
  set -l typed (string join ' ' -- (commandline -opc)[2..-1])
  test "$typed" = "$argv[1]"; or begin; test -n "$argv[1]"; and string match -q -- "$argv[1] -*" "$typed"; end
end
${lines.join('\n')}
`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

const SHELLS: Readonly<Record<string, (beginnings: readonly Words[]) => string>> = {
  bash: formatBash,
  zsh: formatZsh,
  fish: formatFish,
}
