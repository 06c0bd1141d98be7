use minijinja::context;

use super::*;

fn rendered(text: &str) -> Result<String, String> {
    let mut environment = Environment::new();
    set(&mut environment);
    environment.set_fuel(Some(checked(text)?));
    environment.add_template_owned("tried", text.to_owned()).map_err(|error| format!("{error:#}"))?;
    let template = environment.get_template("tried").unwrap();
    let given = context! { goal => "Look at it.", list => vec!["a", "b"], n => 3 };
    render(&template, given).map_err(|error| format!("{error:#}"))
}

#[test]
fn what_templates_do_with_texts_and_numbers_is_done() {
    for (text, made) in [
        ("{{ goal ~ '!' }}", "Look at it.!"),
        ("{{ '-' * 3 }}{{ n * 2 + 1 }}{{ n ** 2 }}", "---79"),
        ("{% for one in list %}{{ loop.index + 1 }}{{ one ~ ';' }}{% endfor %}", "2a;3b;"),
        ("{% set x %}{{ goal }}{{ goal }}{% endset %}{{ x }}", "Look at it.Look at it."),
        ("{% set m = n + 1 %}{{ m }}", "4"),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(goal) ~ m('a ~ b') }}", "<Look at it.><a ~ b>"),
        ("{{ (goal ~ 'x') | upper }}{{ list | join('+') }}", "LOOK AT IT.Xa+b"),
        ("{{ goal | replace('it', goal ~ '') }}", "Look at Look at it.."),
        ("{{ 'a\\nb' | indent(2) }}", "a\n  b"),
        ("{{ range(3) | join(',') }}{# {% set x = a ~ b %} #}", "0,1,2"),
        ("{% raw %}{% set x = a ~ b %}{% endraw %}", "{% set x = a ~ b %}"),
        ("{% if goal ~ 'x' == 'x' %}a{% else %}b{% endif %}", "b"),
        ("{{ [goal] | batch(2) | length }}{{ {'a': 1} | string }}", "1{\"a\": 1}"),
    ] {
        assert_eq!(rendered(text).as_deref(), Ok(made), "{text}");
    }
}

#[test]
fn templates_that_come_with_the_program_would_be_taken_from_users_too() {
    for rules in crate::roles::all() {
        let work = checked(rules.template);
        assert!(work.as_ref().is_ok_and(|work| *work > 200_000), "{}: {work:?}", rules.name);
    }
    let work = checked(super::super::COMMON);
    assert!(work.as_ref().is_ok_and(|work| *work > 200_000), "{work:?}");
}

#[test]
fn what_would_take_memory_or_time_without_end_is_refused() {
    let doubled = format!("{{% set x0 %}}{}{{% endset %}}", "x".repeat(1_000));
    let captures: String = (0..40)
        .map(|n| format!("{{% set x{} %}}{{{{ x{n} }}}}{{{{ x{n} }}}}{{% endset %}}", n + 1))
        .collect();
    let lists: String = (0..60).map(|n| format!("{{% set x{} = [x{n}, x{n}] %}}", n + 1)).collect();
    for text in [
        "{% set x = 'a' %}{% set x = x ~ x %}",
        "{% set x = goal + goal %}",
        "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('a') }}",
        "{% for x in ['a'] recursive %}{{ loop([x ~ x]) }}{% endfor %}",
        "{% with x = goal ~ goal %}{% endwith %}",
        "{{ 'a' * 100000000 }}",
        "{{ goal * n }}",
        "{{ goal | indent(999999999) }}",
        "{{ goal | indent(width=999999999) }}",
        "{{ list | batch(999999999, 'x') }}",
        "{{ list | slice(999999999) }}",
        "{{ '%999999999d' | format(1) }}",
        "{{ '%*d' | format(999999999, 1) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}some text that is written again and again, more text, and some text that is written once more{% endfor %}",
        "{% for a in range(9999) %}{{ goal * 99 }}{% endfor %}",
        &format!("{doubled}{captures}{{{{ x40 }}}}"),
        &format!("{doubled}{lists}{{{{ x60 }}}}"),
        &format!("{doubled}{lists}{{{{ x60 | join }}}}"),
        &format!("{doubled}{lists}{{{{ x60 | upper }}}}"),
        &format!("{doubled}{lists}{{{{ x60 | string }}}}"),
        &format!("{{{{ goal {} }}}}", "~ goal ".repeat(200)),
        &format!("{{{{ {}goal }}}}", "-".repeat(20_000)),
        &format!("{{% if goal %}}{}{{% endif %}}", "{% elif goal %}".repeat(4_000)),
    ] {
        let begun = std::time::Instant::now();
        let made = rendered(text);
        let shown: String = text.chars().take(80).collect();
        assert!(made.is_err(), "{shown}: {} bytes", made.unwrap().len());
        assert!(begun.elapsed().as_secs() < 10, "{shown}: {:?}", begun.elapsed());
    }
}
